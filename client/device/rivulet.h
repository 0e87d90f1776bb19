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
	/* The "data"."name" of the jobs this program works on. NULL, with kinds 1 << RIVULET_EVALUATE alone: this program is an evaluator,
	 * and measures models on a set of its own. An evaluator gets only tasks of jobs that name this device in "evaluate": {"by":
	 * "program"}. */
	const char *data;
	/* How many examples of `data` this device has, at least 1; not used of an evaluator. */
	uint64_t examples;
	/* Called about once a second and after signals: non-zero ends blocking calls. */
	int (*cancel)(void *context);
	void (*event)(void *context, int level, const char *line); /* "event key=value ..." */
	void *context;
	/* The kinds of tasks that this program does, a bit 1 << enum rivulet_kind each; 0: RIVULET_TRAIN. */
	unsigned kinds;
};

enum rivulet_kind {
	RIVULET_TRAIN = 0,
	RIVULET_EVALUATE, /* measure the model: rivulet_submit sends result->evaluate and metrics alone */
};

enum rivulet_role {
	RIVULET_ROLE_TRAIN = 0, /* trained; part of the delta */
	RIVULET_ROLE_AVERAGE, /* part of the delta: the new model has the mean of the devices' values */
	RIVULET_ROLE_FROZEN, /* carried unchanged */
	RIVULET_ROLE_LOCAL, /* trained, and kept on this device from round to round */
};

/* What moved the weights. */
enum rivulet_optimizer {
	RIVULET_OWN = 0, /* another optimizer */
	RIVULET_SGD, /* with or without momentum */
	RIVULET_ADAM,
	RIVULET_ADAMW,
};

struct rivulet_tensor {
	const char *name;
	const uint64_t *shape;
	unsigned dims;
	uint64_t count; /* elements */
	float *data; /* change in place; NULL if the tensor is not of 32-bit floats */
	int trained; /* 1: part of the delta; 0: carried unchanged */
	int role; /* enum rivulet_role */
	const char *type; /* safetensors' word: "F32", "I64", ... */
	void *bytes; /* the tensor's values in little-endian order, perhaps not aligned */
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
	/* Learning rate of this round: the job's, after its schedule; 0 if the job gives none. */
	double rate;
	int kind; /* enum rivulet_kind */
	uint32_t batch; /* examples of one batch; 0: all in one */
	double validation; /* share of the examples kept for evaluation: rivulet_validation */
	/* What the job plans; 0 where the job does not say. With epochs the optimizer steps are known, too: over the examples of the
	 * options without the validation share. Training that ends after about `seconds` is not partial work. */
	uint64_t epochs, steps;
	double seconds;
};

/* A figure of the program's own. */
struct rivulet_metric {
	const char *name; /* 1 to 63 bytes, no control characters */
	double value;
};

/* Figures of the base model on the validation share, before training. A task that evaluates wants only these; they are of all examples if
 * the job keeps no validation share. */
struct rivulet_evaluation {
	uint64_t examples; /* 0: the model was not evaluated */
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
	/* Sum of the weights of the local steps (FedNova); 0: the number of steps. */
	double normaliser;
	struct rivulet_evaluation evaluate;
	const struct rivulet_metric *metrics;
	size_t metric_count; /* at most RIVULET_METRICS_MAX */
};
#define RIVULET_METRICS_MAX 64

/* Opens a home that has joined. On failure *out is NULL and the reason goes to why (may be NULL). */
int rivulet_open(
    struct rivulet **out, const struct rivulet_options *options, char *why, size_t why_size);
/* NULL is legal. A task in hand is forgotten; deltas that the coordinator has not accepted stay on disk for the next start. */
void rivulet_close(struct rivulet *r);

/* Waits for a task at most timeout_s seconds (negative: for ever), fetches its model and loads it. Also sends deltas that wait in the
 * outbox. RIVULET_TIMEOUT, RIVULET_STOPPED, RIVULET_DENIED or an error of this machine; while the coordinator cannot be reached the
 * call goes on waiting. Forgets a task still in hand. */
int rivulet_next(struct rivulet *r, double timeout_s, const struct rivulet_task **task);
/* Called between two steps: RIVULET_OK to go on, RIVULET_TIMEOUT when the time until the deadline is needed for sending (or the
 * owner's seconds_per_round is over, or the owner's rules of [eligibility] forbid work now), RIVULET_STOPPED when cancel says so,
 * RIVULET_STATE without a task. Reads sensors every ten seconds if there are such rules; otherwise never blocks. */
int rivulet_stop_now(struct rivulet *r);
/* Which of `examples` that only the program holds are the validation share of the task in hand, ascending from 0: the same in
 * every round, and the same as `rivulet run` would keep. *count: the room of `indices` on entry (0 with NULL), then how many
 * indices there are; RIVULET_LIMIT if there is not enough room. */
int rivulet_validation(struct rivulet *r, uint64_t examples, uint32_t *indices, size_t *count);
/* Which of `examples` that only the program holds may be used for the task in hand, if the job lets a device claim fewer
 * (aggregate.max_examples). kind: RIVULET_TRAIN, examples to train on, drawn anew in each round; RIVULET_EVALUATE, examples of the
 * validation share. All of them if there are no more than allowed. Ascending from 0; *count as in rivulet_validation. */
int rivulet_share(struct rivulet *r, uint64_t examples, int kind, uint32_t *indices, size_t *count);
/* Says that this program supports a feature, so that it gets jobs that need the feature; called before rivulet_next. "max-examples": the
 * program works on the examples of rivulet_share; "figures": it gives rivulet_figures what the job's evaluate.figures asks for.
 * RIVULET_INVALID: not a feature that a program can have. */
int rivulet_can(struct rivulet *r, const char *feature);
/* Keeps the one block of memory that holds every tensor of the task in hand after the task's end, until rivulet_release, which is called
 * after the task. Once per task; NULL without a task or the second time. */
void *rivulet_hold(struct rivulet *r);
/* NULL is legal; any thread, also after rivulet_close. */
void rivulet_release(void *held);
/* Turns the changed tensors (of a task that evaluates: only the report) into a signed delta, writes the delta to disk and sends it.
 * RIVULET_OK: the coordinator accepted the delta. RIVULET_REFUSED: the coordinator refused it for good. RIVULET_UNREACHABLE,
 * RIVULET_STOPPED: the delta is kept and sent by a later rivulet_next. RIVULET_NUMERIC, RIVULET_INVALID and other errors: nothing was kept;
 * the task is still in hand and may be submitted otherwise or aborted. */
int rivulet_submit(struct rivulet *r, const struct rivulet_result *result);
/* Tells what the figures of the task in hand are means of, so that figures of all devices together are exact means. Called before
 * rivulet_submit; the last call counts. kind: RIVULET_TRAIN for loss and accuracy of the training, over everything that the steps took;
 * RIVULET_EVALUATE for those of the evaluation. loss_count: the divisor of the loss (examples, or the labels that count, by their weights);
 * 0: nothing counted. labels: how many labels counted, of which `right` were right; the accuracy is then right / labels, and none without
 * labels. labels RIVULET_UNCOUNTED: the accuracy is that of rivulet_submit. The numbers hold until the task ends, also for another
 * rivulet_submit after a failed one; loss_count RIVULET_UNTOLD takes them back. RIVULET_INVALID for numbers that cannot be, RIVULET_STATE
 * without a task. */
#define RIVULET_UNCOUNTED UINT64_MAX
#define RIVULET_UNTOLD (-1.0)
int rivulet_count(struct rivulet *r, int kind, double loss_count, uint64_t labels, uint64_t right);
/* Gives the counts of the evaluation of the task in hand, as the text of a report's "evaluate" (wire/FORMAT.md, Report): examples, accuracy
 * or loss, and the counts of each figure that evaluate.figures asks for; unless every example is one label that counts, also loss_count,
 * labels and right, as for rivulet_count. rivulet_submit sends the counts, and checks that result->evaluate has as many examples, or
 * rivulet_count was told as many labels. The last call counts. RIVULET_INVALID: something is missing or contradicts itself. For a job that
 * asks for no figures the text is not read. A program that cannot give figures calls rivulet_abort with "no-figures", and gets no such jobs
 * again. */
int rivulet_figures(struct rivulet *r, const char *evaluate);
/* Keeps `size` bytes for this device's next task of the job, such as an optimizer's state: a safetensors file with at most 1 MiB of header,
 * in which other data than tensors are strings of __metadata__. The bytes are durable when the call returns, valid for the next task once
 * the delta of the task in hand is accepted, and removed if that delta is refused or the task is given back. The last call counts.
 * RIVULET_LIMIT: more than [limits] kept_bytes leaves room for; RIVULET_STATE: the task evaluates; RIVULET_INVALID: not such a file. After
 * an error the task is still in hand, and bytes kept before stay. */
int rivulet_keep(struct rivulet *r, const void *data, size_t size);
/* The bytes that rivulet_keep kept for the job of the task in hand, which may be one that evaluates: those of the last accepted delta whose
 * task kept some. *round, *model: that task's round, and its base model in hex (both may be NULL). Data and model belong to the handle, and
 * are valid until the next rivulet_kept, submit, abort or close. RIVULET_NOTFOUND: nothing was kept; RIVULET_CORRUPT: the bytes were
 * damaged, or of another trainer or model, and were removed. */
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
/* The release of the library, as in rivulet.pc: "1.1.0". The programs' --version names the build. */
const char *rivulet_version(void);

/* A hash of the sizes and offsets of the structs above: a program that calls the library without a C compiler compares it. */
uint64_t rivulet_abi(void);

/* --- since 1.1; these structs stay as they are */

/* Zero the struct, then set what matters. */
struct rivulet_join_options {
	const char *url; /* https://HOST:PORT, or HOST */
	const char *token; /* as `rivulet token create` printed it; NULL: there is none */
	const char *name; /* what people call the device; NULL: the name of the host */
	const char *home; /* see rivulet_options.home */
	int (*cancel)(void *context); /* see rivulet_options.cancel */
	void *context;
};

enum rivulet_join_state {
	RIVULET_JOIN_NEW = 0,
	RIVULET_JOIN_ALREADY, /* the home has joined that coordinator before, and nothing was needed */
	RIVULET_JOIN_AGAIN, /* the coordinator did not know the device any more: the device joined again with its key */
};

#define RIVULET_URLS_MAX 8
struct rivulet_joined {
	int state; /* enum rivulet_join_state */
	unsigned url_count;
	char device[65], name[64], role[16]; /* the id in hex; what the coordinator calls it */
	char urls[RIVULET_URLS_MAX][300]; /* addresses of the coordinator, in one form */
	char home[4096];
};

/* Makes a home a device of a coordinator, as `rivulet join` does; the home's directory is made. The token is sent only after the
 * coordinator's CA was compared with the fingerprint in the token; no other CA is trusted. A repeat does nothing and needs no
 * token, unless the coordinator refuses the certificate: then the device joins again. Another address of the same coordinator is added.
 * Blocks for seconds, or until time-outs of a minute each. On RIVULET_OK `why` (may be NULL) says what the user should know, mostly
 * nothing; else `why` is the reason, and *out is zero. RIVULET_NOTFOUND: a token is needed, and there is none. RIVULET_STATE: the home has
 * joined another coordinator, or an agent works in a home that must join again. RIVULET_INVALID: malformed address or token;
 * RIVULET_DENIED: the token is not of that coordinator, expired, used or revoked. RIVULET_UNREACHABLE, RIVULET_STOPPED or an error of this
 * machine: a repeat goes on where the call ended. */
int rivulet_join(struct rivulet_joined *out, const struct rivulet_join_options *options, char *why,
    size_t why_size);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
