#ifndef RIVULET_H
#define RIVULET_H
#include <stddef.h>
#include <stdint.h>

/*
 * librivulet: a device of a Rivulet fleet, for programs with a training loop of their own.
 *
 *     rivulet_open -> { rivulet_next -> train on task->tensors in place -> rivulet_submit or rivulet_abort } -> rivulet_close
 *
 * The device joins once with `rivulet join`; the library then works with the same home directory. It keeps models in a
 * cache, writes each delta to disk before it is sent, retries, fails over between coordinators, and never prints, exits
 * or touches signals. No global state: several handles (with different homes) may live in one process, each used by one
 * thread at a time. Calls block as stated; `cancel` ends a blocking call early.
 */
#ifdef __cplusplus
extern "C" {
#endif

enum rivulet_error {
	RIVULET_OK = 0,
	RIVULET_TIMEOUT, /* no task came in the time given */
	RIVULET_STOPPED, /* cancel said so */
	RIVULET_INVALID, /* bad argument, settings or message */
	RIVULET_LIMIT, /* a limit of the settings is passed */
	RIVULET_NOMEM,
	RIVULET_IO, /* disk or operating system */
	RIVULET_NOTFOUND, /* no such thing; on opening: this home has not joined */
	RIVULET_DENIED, /* the coordinator does not accept this device, or its certificate does not check */
	RIVULET_CORRUPT, /* stored bytes or a download do not check */
	RIVULET_UNREACHABLE, /* no coordinator answered */
	RIVULET_REFUSED, /* the delta came too late or was refused for good; the reason is in rivulet_why */
	RIVULET_STATE, /* not now: no task in hand, or another process uses this home */
	RIVULET_NUMERIC, /* a weight or figure is not finite */
};

enum rivulet_level { RIVULET_LOG_ERROR, RIVULET_LOG_WARN, RIVULET_LOG_INFO, RIVULET_LOG_DEBUG };

struct rivulet;

/* Strings are copied; zero the struct, then set what matters. */
struct rivulet_options {
	/* NULL: $RIVULET_HOME, /var/lib/rivulet-device for root, else ~/.rivulet. */
	const char *home;
	const char *config; /* NULL: HOME/rivulet.conf, which may be absent */
	/* The "trainer" of the jobs this program works on; "builtin" is not allowed. */
	const char *trainer;
	const char *data; /* the "data"."name" of those jobs */
	uint64_t examples; /* how many examples of it there are here, at least 1 */
	int (*cancel)(void *
		context); /* asked about once a second and after signals: non-zero ends blocking calls */
	void (*event)(void *context, int level, const char *line); /* "event key=value ..." */
	void *context;
};

struct rivulet_tensor {
	const char *name;
	const uint64_t *shape;
	unsigned dims;
	uint64_t count; /* elements */
	float *data; /* change in place; NULL if it does not hold 32-bit floats */
	int trained; /* 1: part of the delta; 0: carried unchanged */
};

/* Belongs to the handle; valid until submit, abort or close. */
struct rivulet_task {
	const char *id, *job, *model; /* hex */
	uint64_t round;
	uint64_t seed; /* of this device's work in this round: derive all randomness from it */
	double deadline_s; /* seconds left when the task came */
	const char *params; /* the job's "params" as JSON text, "{}" without */
	const char *recipe; /* the whole recipe as JSON text */
	struct rivulet_tensor *tensors;
	size_t tensor_count;
	double
	    rate; /* learning rate of this round: the job's, after its schedule; 0 if it gives none */
};

struct rivulet_result {
	uint64_t examples; /* trained on, at least 1 */
	uint64_t steps; /* optimizer steps, at least 1 */
	double loss; /* mean training loss */
	double accuracy; /* NaN if there is none */
	int partial; /* 1: stopped before the planned work */
};

/* Opens a home that has joined. On failure *out is NULL and the reason goes to why (may be NULL). */
int rivulet_open(
    struct rivulet **out, const struct rivulet_options *options, char *why, size_t why_size);
/* NULL is legal. A task in hand is forgotten; deltas not yet taken stay on disk for the next start. */
void rivulet_close(struct rivulet *r);

/* Waits for a task at most timeout_s (negative: for ever), fetches its model and loads it. Also sends what is left in the
 * outbox. RIVULET_TIMEOUT, RIVULET_STOPPED, RIVULET_DENIED or an error of this machine; an unreachable coordinator is
 * waited for. Forgets a task still in hand. */
int rivulet_next(struct rivulet *r, double timeout_s, const struct rivulet_task **task);
/* Turns the changed tensors into a signed delta, writes it to disk and sends it. RIVULET_OK: the coordinator has it.
 * RIVULET_REFUSED: it does not want it. RIVULET_UNREACHABLE, RIVULET_STOPPED: it is kept and sent by a later
 * rivulet_next. RIVULET_NUMERIC, RIVULET_INVALID: nothing was kept; the task is still in hand and may be aborted. */
int rivulet_submit(struct rivulet *r, const struct rivulet_result *result);
/* Gives the task back. reason: a word ("trainer-failed", "no-data", "out-of-memory", ...); log may be NULL. */
int rivulet_abort(struct rivulet *r, const char *reason, const char *log);

/* Why the last call failed, one line, never NULL. */
const char *rivulet_why(const struct rivulet *r);
/* A short constant name, never NULL. */
const char *rivulet_error_name(int error);
/* Device id in hex and the name it joined with. */
const char *rivulet_device(const struct rivulet *r);
const char *rivulet_name(const struct rivulet *r);
const char *rivulet_version(void);

#ifdef __cplusplus
}
#endif
#endif
