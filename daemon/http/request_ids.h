#ifndef REQUEST_IDS_H
#define REQUEST_IDS_H
#include "request_id.h"

/* A new name for a request: a number drawn at the first call of the process, "-", and a counter. No other request of this start has it, and one
 * of another start only if both drew the same 32 bits. Any thread. */
void request_ids_next(char out[REQUEST_ID_MAX]);

#endif
