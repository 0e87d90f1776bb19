#ifndef SPEED_H
#define SPEED_H
#include "err.h"

/*
 * The back end's bare record encryption. Only the benchmark uses this file, to relate what a coordinator costs to what the
 * library alone costs, which tls.h cannot show without sockets.
 */
enum speed_suite { SPEED_CHACHA20_POLY1305, SPEED_AES_128_GCM };
#define SPEED_RECORD 16384 /* bytes */

/* The suite that tls.h puts first. */
enum speed_suite speed_preferred(void);
/* Seals that many records of SPEED_RECORD bytes; the caller times it. */
ERR_MUST_USE enum err speed_seal(enum speed_suite suite, unsigned records);

#endif
