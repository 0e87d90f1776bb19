#ifndef CHAIN_H
#define CHAIN_H
#include <stdio.h>

#include "record_event.h"
#include "record_json.h"

struct buf;

/* Reads a directory that `rivulet verify fetch` made (FORMAT.md, "Audit entries") entry by entry, checking each before it is
 * shown. Memory: one entry with its details. Nothing is trusted but the CA. */

struct cmd_verify_entry {
	struct record link;
	uint8_t hash[32]; /* of the entry's signed bytes, which the next entry names */
	const struct json *body;
	enum record_event event;
	size_t places; /* number of details that the body names */
	const struct record_detail *details; /* the details that are there, by place */
	size_t count;
};

struct cmd_verify_chain {
	uint64_t entries, details, erased;
	uint64_t first_ms, last_ms;
	uint8_t head[32]; /* hash of the last entry; zero if there is none */
	uint8_t ca[32]; /* SHA-256 of the CA certificate that was used */
	uint64_t broken; /* seq of the first invalid entry; 0: none */
};

/* Calls fn (may be NULL) for every valid entry. ERR_CORRUPT with out->broken and the reason in why at the first invalid entry, or
 * if the CA did not issue the signer's certificate; fn's first error ends the reading, too. ca_file: NULL: DIR/ca.pem. */
ERR_MUST_USE enum err cmd_verify_chain_read(const char *dir, const char *ca_file,
    enum err (*fn)(void *ctx, const struct cmd_verify_entry *e, struct why *why), void *ctx,
    struct cmd_verify_chain *out, struct why *why);

#endif
