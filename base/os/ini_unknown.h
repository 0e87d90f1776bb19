#ifndef INI_UNKNOWN_H
#define INI_UNKNOWN_H
#include "ini.h"

/* What is said of a key or a section that a file does not have: where it belongs, or which one was meant. */
#define INI_UNKNOWN_MAX 160
void ini_unknown_key(char out[INI_UNKNOWN_MAX], const struct ini *ini,
    const struct ini_section *section, const char *name);
/* head: what stands between the brackets. */
void ini_unknown_section(char out[INI_UNKNOWN_MAX], const struct ini *ini, const char *head);

#endif
