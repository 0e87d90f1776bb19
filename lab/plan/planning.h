#ifndef PLANNING_H
#define PLANNING_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct cmd_admin;

/* A job before it is submitted. */
struct plan_want {
	const char *text; /* the document as submitted */
	size_t len;
	/* The coordinator that is asked about the document and its devices; NULL: none. */
	struct cmd_admin *admin;
	const char *fleet_file; /* profiles of the devices; NULL: as the coordinator knows them */
	uint64_t devices; /* assume so many equal devices; 0: as fleet_file says */
	const char *config; /* a device's settings; NULL: none */
	const char *init; /* file of the first weights; NULL: drawn, or fetched */
};

/* `rivulet job plan`. */
int planning_main(int argc, char **argv);
/* Plans and prints, as JSON or as text. *runs: false if the job cannot run; the reasons were printed. */
ERR_MUST_USE enum err planning_show(
    const struct plan_want *want, bool as_json, bool *runs, struct why *why);

#endif
