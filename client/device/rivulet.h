#ifndef RIVULET_H
#define RIVULET_H
#include <stddef.h>
#include <stdint.h>

/*
 * librivulet: a device of a Rivulet fleet, for programs with a training loop of their own.
 *
 *     rivulet_join
 *     rivulet_open -> { rivulet_next -> train on task->tensors in place -> rivulet_submit or rivulet_abort } -> rivulet_close
 *
 * The device joins once, with `rivulet join` or rivulet_join; the library then works with the same home directory. It keeps models in a
 * cache, writes each delta to disk before it is sent, retries, fails over between coordinators, and never prints, exits
 * or touches signals. No global state: several handles (with different homes) may live in one process, each used by one
 * thread at a time. Calls block as stated; `cancel` ends a blocking call early.
 */
#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
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
	/* The "trainer" of the jobs this program works on; "builtin" is not allowed, but for an evaluator's. */
	const char *trainer;
	/* The "data"."name" of those jobs. NULL, with kinds 1 << RIVULET_EVALUATE alone: this program is an evaluator, and measures models on a
	 * set of its own. It gets tasks of jobs that name this device in "evaluate": {"by": "program"}, and no others. */
	const char *data;
	uint64_t
	    examples; /* how many examples of it there are here, at least 1; of an evaluator it says nothing */
	int (*cancel)(void *
		context); /* asked about once a second and after signals: non-zero ends blocking calls */
	void (*event)(void *context, int level, const char *line); /* "event key=value ..." */
	void *context;
	/* Of tasks, one bit 1 << enum rivulet_kind each; 0: RIVULET_TRAIN. */
	unsigned kinds;
};

enum rivulet_kind {
	RIVULET_TRAIN = 0,
	RIVULET_EVALUATE, /* measure the model: rivulet_submit sends result->evaluate and metrics alone */
};

enum rivulet_role {
	RIVULET_ROLE_TRAIN = 0, /* trained; part of the delta */
	RIVULET_ROLE_AVERAGE, /* part of the delta: the new model has the mean of what the devices have */
	RIVULET_ROLE_FROZEN, /* carried unchanged */
	RIVULET_ROLE_LOCAL, /* trained, and kept on this device from round to round */
};

/* What moved the weights. */
enum rivulet_optimizer {
	RIVULET_OWN = 0, /* none of these */
	RIVULET_SGD, /* with or without momentum */
	RIVULET_ADAM,
	RIVULET_ADAMW,
};

struct rivulet_tensor {
	const char *name;
	const uint64_t *shape;
	unsigned dims;
	uint64_t count; /* elements */
	float *data; /* change in place; NULL if it does not hold 32-bit floats */
	int trained; /* 1: part of the delta; 0: carried unchanged */
	int role; /* enum rivulet_role */
	const char *type; /* safetensors' word: "F32", "I64", ... */
	void *bytes; /* its values in little-endian order, perhaps not aligned */
	uint64_t size; /* bytes */
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
	int kind; /* enum rivulet_kind */
	uint32_t batch; /* examples of one batch; 0: all in one */
	double validation; /* share of the examples kept for evaluation: rivulet_validation */
	/* What the job plans, 0 where it says nothing of it. Steps are known with epochs too: those of the optimizer, over the
	 * examples of the options less the validation share. Training ends after about `seconds`; that is not partial work. */
	uint64_t epochs, steps;
	double seconds;
};

/* A figure of the program's own. */
struct rivulet_metric {
	const char *name; /* 1 to 63 bytes, no control characters */
	double value;
};

/* What the base model does on the validation share, before training. Of a task that evaluates it is all the work: on all examples,
 * where the job keeps no validation share. */
struct rivulet_evaluation {
	uint64_t examples; /* 0: it was not evaluated */
	double loss; /* NaN if there is none */
	double accuracy; /* 0 to 1; NaN if there is none */
};

struct rivulet_result {
	uint64_t examples; /* trained on, at least 1 */
	uint64_t steps; /* optimizer steps, at least 1 */
	double loss; /* mean training loss */
	double accuracy; /* NaN if there is none */
	int partial; /* 1: stopped before the planned work */
	int optimizer; /* enum rivulet_optimizer */
	double normaliser; /* sum of the weights of the local steps; 0: steps */
	struct rivulet_evaluation evaluate;
	const struct rivulet_metric *metrics;
	size_t metric_count; /* at most RIVULET_METRICS_MAX */
};
#define RIVULET_METRICS_MAX 64

/* Opens a home that has joined. On failure *out is NULL and the reason goes to why (may be NULL). */
int rivulet_open(
    struct rivulet **out, const struct rivulet_options *options, char *why, size_t why_size);
/* NULL is legal. A task in hand is forgotten; deltas not yet taken stay on disk for the next start. */
void rivulet_close(struct rivulet *r);

/* Waits for a task at most timeout_s (negative: for ever), fetches its model and loads it. Also sends what is left in the
 * outbox. RIVULET_TIMEOUT, RIVULET_STOPPED, RIVULET_DENIED or an error of this machine; an unreachable coordinator is
 * waited for. Forgets a task still in hand. */
int rivulet_next(struct rivulet *r, double timeout_s, const struct rivulet_task **task);
/* Asked between two steps: RIVULET_OK to go on, RIVULET_TIMEOUT when what is left until the deadline is needed for sending (or the
 * owner's seconds_per_round is over, or the owner's rules of [eligibility] want the device to rest), RIVULET_STOPPED when cancel says so,
 * RIVULET_STATE without a task. Reads sensors every ten seconds where there are such rules, and waits for nothing else. */
int rivulet_stop_now(struct rivulet *r);
/* Which of `examples` that only the program holds are the validation share of the task in hand, ascending from 0: the same in
 * every round, and those that `rivulet run` would keep. *count: the room of `indices` on entry (0 with NULL), then how many
 * there are; RIVULET_LIMIT if that is more. */
int rivulet_validation(struct rivulet *r, uint64_t examples, uint32_t *indices, size_t *count);
/* Which of `examples` that only the program holds the task in hand may be worked on, of a job that lets a device claim fewer
 * (aggregate.max_examples): kind RIVULET_TRAIN, to train on, drawn anew in each round; RIVULET_EVALUATE, of the validation share. All of
 * them where there is no need to draw. Ascending from 0; *count as in rivulet_validation. */
int rivulet_share(struct rivulet *r, uint64_t examples, int kind, uint32_t *indices, size_t *count);
/* Says that this program does what a feature asks of it ("max-examples": it works on what rivulet_share gives; "figures": it gives
 * rivulet_figures what the job's evaluate.figures asks for), so that it is given such jobs. Before rivulet_next. RIVULET_INVALID: not a feature
 * that a program can have. */
int rivulet_can(struct rivulet *r, const char *feature);
/* The one block of memory that holds every tensor of the task in hand now belongs to the caller too: it stays after the task, until
 * rivulet_release, which comes after the task. Once per task; NULL without a task or the second time. */
void *rivulet_hold(struct rivulet *r);
/* NULL is legal; any thread, also after rivulet_close. */
void rivulet_release(void *held);
/* Turns the changed tensors (of a task that evaluates: nothing but the report) into a signed delta, writes it to disk and sends it. RIVULET_OK: the coordinator has it.
 * RIVULET_REFUSED: it does not want it. RIVULET_UNREACHABLE, RIVULET_STOPPED: it is kept and sent by a later
 * rivulet_next. RIVULET_NUMERIC, RIVULET_INVALID and other errors: nothing was kept; the task is still in hand and may be
 * submitted otherwise or aborted. */
int rivulet_submit(struct rivulet *r, const struct rivulet_result *result);
/* What the figures of the task in hand are means of, so that those of all devices together are sums over what counted divided by what
 * counted; before rivulet_submit, the last call counts. kind: RIVULET_TRAIN, of the training loss and accuracy, everything that the steps
 * took; RIVULET_EVALUATE, of the evaluation. loss_count: what the loss is divided by (examples, or the labels that count, by their weights),
 * 0: nothing counted. Of `labels` that count so many are `right`: the accuracy is right / labels then, none without labels;
 * RIVULET_UNCOUNTED: it stands as rivulet_submit gets it. What was said holds until the task ends, also for another rivulet_submit after one that
 * failed; loss_count RIVULET_UNTOLD takes it back. RIVULET_INVALID for what cannot be, RIVULET_STATE without a task. */
#define RIVULET_UNCOUNTED UINT64_MAX
#define RIVULET_UNTOLD (-1.0)
int rivulet_count(struct rivulet *r, int kind, double loss_count, uint64_t labels, uint64_t right);
/* What the evaluation of the task in hand counted, as the text of a report's "evaluate" (wire/FORMAT.md, Report): examples, accuracy or loss, and
 * the counts of each figure that evaluate.figures asks for; where not every example is one label that counts also loss_count, labels and right, as
 * rivulet_count is told them. rivulet_submit sends the counts, and wants as many examples in result->evaluate, or as many labels as rivulet_count was told.
 * Called again, the last one counts. RIVULET_INVALID: something is missing or contradicts itself. Of a job that asks for no figures
 * nothing is read. A loop that cannot give them says so: rivulet_abort with "no-figures", and such jobs are not offered to it again. */
int rivulet_figures(struct rivulet *r, const char *evaluate);
/* Keeps `size` bytes for this device's next task of the job: an optimizer's state, say. They are a safetensors file of at most 1 MiB of header, with
 * what is no tensor as a string of its __metadata__. Durable when this returns; in force once the delta of the task in hand is accepted,
 * gone with one that is refused or a task that is given back. Called again, the last one counts. RIVULET_LIMIT: more than [limits]
 * kept_bytes leaves room for; RIVULET_STATE: the task evaluates; RIVULET_INVALID: no such file. The task is still in hand then, and what
 * was kept before is. */
int rivulet_keep(struct rivulet *r, const void *data, size_t size);
/* What is in force for the job of the task in hand, also of one that evaluates: `size` bytes of the last accepted delta whose task kept
 * something; of that task the round, and the model that it began with in hex (both may be NULL). Data and model belong to the handle, and are
 * valid until the next call of it, submit, abort or close. RIVULET_NOTFOUND: nothing is in force; RIVULET_CORRUPT: it was damaged, or of another
 * trainer or model, and is gone. */
int rivulet_kept(
    struct rivulet *r, const void **data, size_t *size, uint64_t *round, const char **model);
/* Gives the task back. reason: a word ("trainer-failed", "no-data", "out-of-memory", ...); log may be NULL. */
int rivulet_abort(struct rivulet *r, const char *reason, const char *log);

/* Why the last call failed, one line, never NULL. */
const char *rivulet_why(const struct rivulet *r);
/* A short constant name, never NULL. */
const char *rivulet_error_name(int error);
/* Device id in hex and the name it joined with. */
const char *rivulet_device(const struct rivulet *r);
const char *rivulet_name(const struct rivulet *r);
/* The release of the library, as in rivulet.pc: "1.1.0". Which build it is the programs say (--version). */
const char *rivulet_version(void);

/* Of the sizes and offsets of the structs above: who calls the library without a compiler compares it. */
uint64_t rivulet_abi(void);

/* --- since 1.1; these structs stay as they are */

/* Zero the struct, then set what matters. */
struct rivulet_join_options {
	const char *url; /* https://HOST:PORT, or HOST */
	const char *token; /* as `rivulet token create` printed it; NULL: there is none */
	const char *name; /* what people call the device; NULL: the name of the host */
	const char *home; /* as of rivulet_options */
	int (*cancel)(void *context); /* likewise */
	void *context;
};

enum rivulet_join_state {
	RIVULET_JOIN_NEW = 0,
	RIVULET_JOIN_ALREADY, /* the home has joined that coordinator before, and nothing was needed */
	RIVULET_JOIN_AGAIN, /* the coordinator did not know the device any more: it joined with its key */
};

#define RIVULET_URLS_MAX 8
struct rivulet_joined {
	int state; /* enum rivulet_join_state */
	unsigned url_count;
	char device[65], name[64], role[16]; /* the id in hex; what the coordinator calls it */
	char urls[RIVULET_URLS_MAX][300]; /* addresses of the coordinator, in one form */
	char home[4096];
};

/* Makes a home a device of a coordinator, as `rivulet join` does; its directory is made. The token is sent only after the
 * coordinator's CA was compared with the fingerprint in it; no other CA is looked for. A repeat does nothing and needs no
 * token, unless the coordinator refuses the certificate: then it joins again. Another address of the same coordinator is added.
 * Blocks for seconds, or until time-outs of a minute each. On RIVULET_OK `why` (may be NULL) says what the user should know, mostly nothing;
 * else it is the reason, and *out is zero. RIVULET_NOTFOUND: a token is needed, and there is none. RIVULET_STATE: the home has
 * joined another coordinator, or an agent works in a home that must join again. RIVULET_INVALID: no such address, or no token; RIVULET_DENIED: the token is not of that
 * coordinator, expired, used or revoked. RIVULET_UNREACHABLE, RIVULET_STOPPED or an error of this machine: a repeat goes on. */
int rivulet_join(struct rivulet_joined *out, const struct rivulet_join_options *options, char *why,
    size_t why_size);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
