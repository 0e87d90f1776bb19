#ifndef MEMBER_H
#define MEMBER_H
#include <stddef.h>

/* For tables whose rows name members of a struct: the offset and the size, which are two members of such a row. */
#define MEMBER(type, member) offsetof(struct type, member), sizeof(((struct type *)0)->member)

#endif
