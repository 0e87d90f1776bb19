#ifndef HISTORY_H
#define HISTORY_H
#include "chain.h"
#include "job.h"
#include "key.h"

struct buf;

/* What a valid chain says, and whether it is consistent: jobs with their documents, the keys and names of devices, and rounds that
 * follow from each other. Built entry by entry; memory grows with jobs, rounds and devices, not with deltas. */

#define CMD_VERIFY_WORD 64

/* Overrides that were in force in a round; 0: as the document says. */
struct cmd_verify_terms {
	uint64_t goal, quorum;
};

/* A round that has ended, as its record says. */
struct cmd_verify_round {
	uint8_t job[16];
	uint64_t round;
	bool committed; /* false: failed */
	uint8_t base[32], model[32];
	uint8_t base_state[32], state[32]; /* of the server optimizer; zero: none */
	char rule[CMD_VERIFY_WORD], optimizer[CMD_VERIFY_WORD];
	double rate, momentum;
	double factor; /* of the rate, after the number of reports; 1 if the record says none */
	bool evaluated;
	double loss, accuracy, own; /* NaN where unknown */
	uint64_t measured; /* the round whose base loss, accuracy and own measure; 0: this round */
	char guard[CMD_VERIFY_WORD]; /* what the guard did, "" if nothing */
	uint8_t next[32], next_state[32]; /* what the next round starts from */
	uint64_t reports, examples;
	bool buffered;
	uint32_t max_staleness; /* 0: all deltas are of this round's tasks */
	enum staleness_weight weight;
	enum staleness_divide divide;
	struct cmd_verify_terms terms;
	struct job_stamp stamp; /* in force beside the document */
	const struct record_detail *manifests; /* the manifests that are there */
	size_t count;
};
/* Reads the round of an entry. ERR_NOTFOUND: the entry is not about the end of a round. ERR_CORRUPT: the entry lacks what a round needs. */
ERR_MUST_USE enum err cmd_verify_history_round(
    struct cmd_verify_round *out, const struct cmd_verify_entry *e, struct why *why);

/* Reports that a round with these terms needed. */
uint32_t cmd_verify_history_quorum(
    const struct cmd_verify_terms *t, const struct job_spec *document);

struct cmd_verify_device {
	uint8_t id[32];
	char name[CMD_VERIFY_WORD];
	uint8_t (*keys)[KEY_SPKI_LEN];
	size_t key_count;
};

/* The figure of the last model of a job that a program has measured; round 0: there is none. */
struct cmd_verify_figure {
	uint64_t round;
	uint8_t model[32];
	double loss, accuracy; /* NaN where unknown */
};

struct cmd_verify_job {
	uint8_t id[16];
	bool by_program; /* evaluate.by of the document is "program" */
	struct cmd_verify_figure figure;
	char *document; /* NULL: the chain does not hold it */
	size_t document_len;
	uint64_t rounds; /* the last round that ended */
	uint8_t (
	    *models)[32]; /* every base a round may have: the initial model, each round's model */
	size_t model_count;
	uint8_t (*returns)[32]; /* models that the guard went back to */
	size_t return_count;
	uint8_t next[32], next_state[32]; /* base and optimizer state of the next round */
	/* For a job that takes late deltas: the last rounds, the newest first. */
	struct late_point *points;
	size_t point_count;
	struct cmd_verify_guards *schedule; /* NULL: nothing to check */
};

struct cmd_verify_history {
	struct cmd_verify_job *jobs;
	size_t job_count;
	struct cmd_verify_device *devices; /* by id */
	size_t device_count;
	/* Numbers of rounds and of manifests; unsigned_manifests: manifests whose signature cannot be checked, as the keys are erased. */
	uint64_t committed, failed, evaluated, manifests, unsigned_manifests;
};

/* The fn for cmd_verify_chain_read; ctx is the history. ERR_CORRUPT: the entry contradicts earlier ones. */
ERR_MUST_USE enum err cmd_verify_history_add(
    void *ctx, const struct cmd_verify_entry *e, struct why *why);
const struct cmd_verify_job *cmd_verify_history_job(
    const struct cmd_verify_history *h, const uint8_t id[16]);
/* id: the device that a word means, by id, unique beginning of an id, or name. ERR_NOTFOUND, ERR_INVALID if several fit. A whole id is
 * accepted even if no such device is known. */
ERR_MUST_USE enum err cmd_verify_history_device(
    const struct cmd_verify_history *h, const char *word, uint8_t id[32], struct why *why);
void cmd_verify_history_deinit(struct cmd_verify_history *h);

#endif
