#ifndef BACKUP_H
#define BACKUP_H
#include <stdbool.h>
#include <stdint.h>

#include "err.h"

/*
 * A consistent copy of a state directory, also while its coordinator runs: the database as one transaction sees it, and the files
 * that its rows name, held by hard links from that moment on. A copy is marked, so that the first start from it raises the
 * incarnation (incarnation.h), and its files are listed in MANIFEST.json (list.h).
 */
struct backup {
	const char *state_dir;
	const char *dir; /* the copy's directory: new or empty */
	bool keys; /* backup_make: copy keys/, too */
	uint64_t rate; /* bytes per second; 0: no limit */
	/* results */
	uint64_t files, bytes, incarnation;
	unsigned tries; /* how often the copy was begun: anew each time a file had gone meanwhile */
	bool kept_keys; /* restore: state_dir had keys already, and they were left */
};

/* ERR_EXISTS if dir is not empty; ERR_CORRUPT if a file does not match its name, ERR_NOTFOUND if one is missing: then `check`
 * says more. On failure dir is empty again. why must be given. */
ERR_MUST_USE enum err backup_make(struct backup *b, struct why *why);

#endif
