#ifndef REQUEST_ID_H
#define REQUEST_ID_H
#include <stdbool.h>

/* The name that a coordinator gives a request in its answer, for the logs of both sides (Rivulet-Request). What comes from the other side is
 * believed to be one only if it has this form: 1 to REQUEST_ID_MAX - 1 of the characters 0-9 a-z A-Z - */
#define REQUEST_ID_MAX 33
bool request_id_valid(const char *text);

#endif
