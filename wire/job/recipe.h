#ifndef RECIPE_H
#define RECIPE_H
#include "figure_set.h"
#include "net_spec.h"
#include "recipe_text.h"

struct codec;

/*
 * The part of a job that a device works by: network, data, local training. Plain structs, which model/ takes and
 * recipe_parse makes from JSON. Unknown keys are errors when `strict` (job files) and ignored otherwise
 * (task messages).
 */
#define RECIPE_NAME_MAX NET_SPEC_NAME_MAX
#define RECIPE_RULES_MAX 64
#define RECIPE_CODECS_MAX 8
#define RECIPE_STEPS_MAX 1000000000
#define RECIPE_BUILTIN "builtin" /* the trainer that every device has under this name */

enum schedule_type {
	SCHEDULE_CONSTANT,
	SCHEDULE_STEP,
	SCHEDULE_COSINE,
	SCHEDULE_LINEAR,
	SCHEDULE_WSD, /* warm-up, stable, decay */
};

/* The learning rate over rounds; t = round - 1 (train: epoch - 1). */
struct schedule_spec {
	enum schedule_type type;
	uint32_t warmup; /* rounds of linear warm-up: rate * (t+1)/warmup while t < warmup */
	uint32_t every; /* step: multiply by gamma each `every` rounds after warm-up */
	double gamma;
	uint32_t stable; /* wsd: rounds at the full rate between warm-up and decay */
	/* Cosine, linear, wsd: rounds from rate to floor, after warm-up and stable. */
	uint32_t period;
	double floor; /* cosine, linear, wsd: the final rate as a share of rate */
};

enum optimizer_type { OPTIMIZER_SGD, OPTIMIZER_ADAM, OPTIMIZER_ADAMW };

struct optimizer_spec {
	char name[RECIPE_NAME_MAX]; /* "sgd" */
	enum optimizer_type type; /* OPTIMIZER_SGD for a name that only another trainer knows */
	/* rate: 0 if the job is for another trainer and gives none. */
	double rate, momentum, weight_decay;
	bool nesterov;
	double beta1, beta2, epsilon; /* adam, adamw */
};

enum local_unit {
	LOCAL_EPOCHS,
	LOCAL_STEPS,
	LOCAL_SECONDS,
	LOCAL_SIZED, /* each task says how many steps, by the device's measured speed */
};

/* Where the randomness inside a step (dropout) comes from. */
enum local_random {
	RANDOM_STREAM, /* one generator for the whole local training */
	RANDOM_COUNTER, /* seed, step, micro-batch, layer and element: any cut of the work draws the same */
};

/* Which outputs a device drops in the forward pass and computes again in the backward pass: less memory, the same bits. */
enum local_recompute {
	RECOMPUTE_NONE,
	RECOMPUTE_BLOCKS, /* outputs inside blocks of layers */
};

struct local_spec {
	enum local_unit unit;
	/* A whole number of epochs or steps; not used with LOCAL_SECONDS; LOCAL_SIZED: in a job min_steps, in a task the task's steps. */
	double amount;
	double target_s; /* LOCAL_SIZED: how long a task is to take */
	uint64_t min_steps, max_steps; /* LOCAL_SIZED */
	double seconds; /* training ends after about so long; 0: not because of the time */
	uint32_t batch; /* 0: the whole share in one batch */
	struct optimizer_spec optimizer;
	struct schedule_spec schedule;
	double prox; /* FedProx's mu; 0: none */
	double clip_norm; /* largest norm of a gradient; 0: any */
	uint32_t accumulate; /* batches per step, at least 1 */
	/* A batch is computed in pieces of so many examples, whose gradients are summed; 0: in one piece. */
	uint32_t micro_batch;
	/* Gradients of pieces are summed in so many groups, then over the groups; at least 1. */
	uint32_t groups;
	enum local_recompute recompute;
	enum local_random random;
	uint32_t variates; /* devices that keep a control variate each (SCAFFOLD); 0: none does */
	/* Fewest examples of a piece: 2 if the built-in trainer has a batch norm with one value of each channel in an example
	 * (net_places_single), else 1. A smaller piece is left out of its step. */
	uint32_t least;
};

struct data_spec {
	char name[RECIPE_NAME_MAX];
	uint32_t shape[3];
	unsigned dims; /* 1 to 3; 0 if not given, which only a model without layers may leave out */
	size_t class_count; /* 0 for regression */
	struct json *classes; /* array of class_count names, owned; NULL for regression */
	size_t channels; /* length of mean and std: 0 (none), 1, or shape[0] */
	float mean[16], std[16]; /* std > 0; applied after bytes were scaled to 0..1 */
	uint32_t window; /* of a text: tokens of an example; 0: as the device's owner sets */
	struct augment_spec {
		bool flip; /* left to right, for half of the examples */
		/* Shifted by up to so many pixels each way; pixels from outside are 0. */
		uint32_t crop;
		double noise; /* standard deviation, before normalising */
		uint32_t cutout; /* side of a square that is 0 */
	} augment; /* of training examples; zeros: none */
	double validation; /* share of the local examples kept for evaluation, 0 <= v < 1 */
	uint64_t min_examples;
};

/* How deltas travel. */
struct upload_spec {
	/* A device uses the first one that it offers; a task has one alone. */
	char codecs[RECIPE_CODECS_MAX][RECIPE_NAME_MAX];
	size_t codec_count; /* at least 1 */
	double share; /* sparse: the largest share of the elements that is sent */
	bool says_feedback, feedback; /* the device adds what encoding lost to its next delta */
};

enum evaluate_by {
	EVALUATE_NONE,
	EVALUATE_COORDINATOR,
	EVALUATE_DEVICES,
	EVALUATE_PROGRAM, /* on a central set, by a program of devices that the job names; tasks to train do not say it */
};

struct recipe {
	struct recipe_text *text; /* the recipe's keys as JSON; the recipe holds a reference */
	struct net_spec net;
	char init[65]; /* hex id of a model, "" if drawn from the seed */
	struct tensor_rule *rules;
	size_t rule_count;
	char trainer[RECIPE_NAME_MAX]; /* RECIPE_BUILTIN or a name */
	bool builtin; /* `trainer` is the built-in one */
	struct data_spec data;
	struct local_spec local;
	enum evaluate_by evaluate_by;
	char evaluate_data[RECIPE_NAME_MAX];
	struct figure_set figures; /* beyond loss and accuracy */
	uint32_t evaluate_every; /* coordinator, program: each so many rounds, at least 1 */
	/* Seconds that an evaluation may take; figures that are not there by then stay unknown. Coordinator, program: of each round.
	 * Devices: of the last model, 0 for round.deadline_s. */
	double evaluate_deadline_s;
	char codec[RECIPE_NAME_MAX]; /* the first of upload.codecs; in a task the codec to use */
	struct upload_spec upload;
};

/* Takes the recipe keys out of `doc`. With strict, a key that no recipe or job knows is an error naming
 * its path ("local.optimizer.lr: unknown key"); values out of range are errors either way (ERR_INVALID), as is a text past
 * RECIPE_TEXT_MAX (ERR_LIMIT). On failure *out is empty; recipe_deinit may still be called. */
ERR_MUST_USE enum err recipe_parse(
    struct recipe *out, const struct json *doc, bool strict, struct why *why);
void recipe_deinit(struct recipe *r);
bool recipe_names_builtin(const char *trainer);
bool recipe_upload_takes(const struct upload_spec *u, const char *codec);
/* The first of the job's codecs that is offered; NULL if none is. */
const char *recipe_upload_choose(
    const struct upload_spec *u, const char (*offered)[RECIPE_NAME_MAX], size_t count);
/* codec_params.entries: share of elements, rounded up, computed in double precision. */
uint64_t recipe_upload_entries(const struct upload_spec *u, uint64_t elements);
/* Bytes of a payload in `codec`, or the most bytes if the codec has no fixed size; UINT64_MAX on overflow. */
uint64_t recipe_upload_bytes(
    const struct upload_spec *u, const struct codec *codec, uint64_t elements);
/* The most bytes of a payload in any of the job's codecs. */
uint64_t recipe_upload_most(const struct upload_spec *u, uint64_t elements);
/* Does a device add what this codec lost to its next delta? As upload.feedback says; without that key, only for codec sparse. */
bool recipe_upload_feedback(const struct upload_spec *u, const struct codec *codec);
/* The names, for a device's offer, of what a device may know beyond the first version; NULL-terminated. */
const char *const *recipe_feature_names(void);
#define RECIPE_FEATURE_EVALUATE "evaluate-task" /* tasks of kind evaluate */
/* Only tasks of kind evaluate of jobs with EVALUATE_PROGRAM. Offered by a program with a data set of its own, not by agents, so not among
 * recipe_feature_names. */
#define RECIPE_FEATURE_EVALUATE_PROGRAM "evaluate-program"
#define RECIPE_FEATURE_BUFFERED "buffered" /* tasks that outlive their round */
#define RECIPE_FEATURE_FIGURES "figures" /* reports with what evaluate.figures asks for */
#define RECIPE_FEATURE_MAX_EXAMPLES "max-examples" /* draws a share where a task allows no more */
#define RECIPE_FEATURE_TRAINER_VARIATES \
	"trainer-variates" /* variates of a job with another trainer */
/* Who acts on a feature; FEATURE_BY_TRAINER for a name that this build does not know. */
enum feature_actor { FEATURE_BY_TRAINER, FEATURE_BY_DEVICE, FEATURE_BY_BOTH };
enum feature_actor recipe_feature_actor(const char *name);
/* A feature that the recipe with `codec` needs and the device does not offer (such a device would ignore the key in silence); NULL if there
 * is none. */
const char *recipe_feature_missing(const struct recipe *r, const struct codec *codec,
    const char (*offered)[RECIPE_NAME_MAX], size_t count);
/* The fewest examples with which a device gets a task: data.min_examples, or more if a piece of its training needs more. */
uint64_t recipe_min_examples(const struct recipe *r, bool evaluates);
/* A constant text that warns who submits a valid recipe; NULL: no warning. */
const char *recipe_warning(const struct recipe *r);
/* The most labels of one example. Of a trainer program's examples, whose labels are not known: a guess that allows one for each value. */
double recipe_labels_most(const struct recipe *r);
/* Does the recipe's data change training examples (augment)? */
bool recipe_augments(const struct data_spec *d);

#endif
