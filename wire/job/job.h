#ifndef JOB_H
#define JOB_H
#include "recipe.h"

/* The job document: what a submitter asks for. Its JSON grammar stands in FORMAT.md. */
#define JOB_DOCUMENT_MAX (1u << 20)
/* A recipe must fit into messages of JSON_DEPTH_MAX that carry it. */
#define JOB_DEPTH_MAX 24
#define JOB_VALUES_MAX 16384 /* of a new document: reading each takes some 100 bytes */
#define JOB_GOAL_MAX 200000 /* the record of a round has room for so many reports */
#define JOB_SELECT_MAX 1024
#define JOB_LABELS_MAX 32

struct job_label {
	char key[RECIPE_NAME_MAX];
	char value[RECIPE_NAME_MAX];
};

/* What a round takes. */
enum round_mode {
	ROUND_MODE_SYNCHRONOUS, /* deltas of its own tasks */
	ROUND_MODE_BUFFERED, /* whatever arrives while it is open, of any task that is not too old (FedBuff; Nguyen et al. 2022) */
};
#define JOB_STALENESS_MAX 1000

struct round_spec {
	enum round_mode mode;
	uint32_t goal; /* reports wanted, >= 1 */
	uint32_t quorum; /* reports needed, 1..goal; default goal */
	double deadline_s; /* default 600 */
	/* How many rounds old a task may be whose delta the open round takes. Synchronous: 0 where late deltas are dropped, 1 where they go
	 * into the next round. Buffered: default 10 x ceil(concurrency / goal). */
	uint32_t max_staleness;
	uint32_t per_device; /* deltas of one device in a round; default 1 */
	/* synchronous */
	double over_select; /* tasks handed out per wanted report, >= 1; default 1 */
	double grace_s; /* after quorum, default 10 */
	double sample_s; /* pick sample: how long askers are gathered before the draw; default 1 */
	bool sample; /* "pick": "sample" */
	/* buffered */
	uint32_t concurrency; /* tasks out at a time; default 2 x goal */
	/* A task out for longer gives its place to another device; default 3600. */
	double task_timeout_s;
};

struct select_spec {
	struct job_label labels[JOB_LABELS_MAX]; /* all must match */
	size_t label_count;
	char (*devices)[RECIPE_NAME_MAX + 1]; /* ids in hex or names, sorted; empty: any device */
	size_t device_count;
	/* Device's place, 0 <= from < to <= 100: first 8 bytes of SHA-256(job id || device id) as a share. */
	double percent[2];
};

/* How deltas become one update; aggregator/rules/rule.h says what the rules do. */
struct rule_spec {
	char name[RECIPE_NAME_MAX]; /* "mean" */
	uint32_t hostile; /* deltas that may be hostile; default 0 */
	bool hostile_given; /* `hostile` is in the document, not a default */
	uint32_t picks; /* krum; default 1 */
	uint32_t bucket; /* deltas averaged before the rule; default 1 */
	bool nearest; /* each delta becomes the mean of those nearest to it */
	uint32_t iterations; /* geometric_median, default 8; centered_clipping, default 1 */
	double smoothing; /* geometric_median: least distance counted; default 1e-6 */
	double radius; /* centered_clipping */
	double bound; /* longer deltas are shortened to this L2 norm; 0: no bound */
	bool bound_median; /* longer deltas are shortened to the median of the round's norms */
};

/* A rate that follows the number of reports; round/policy/scale.h says how. */
enum scale_by { SCALE_NONE, SCALE_LINEAR, SCALE_SQRT };

struct scale_spec {
	enum scale_by by; /* SCALE_NONE: the rate stays */
	uint32_t reports; /* the number of reports for which the rate was chosen, >= 1 */
	uint32_t warmup; /* rounds over which the factor moves from its last value to a new one */
};

/* The weight of a delta that is t rounds old. */
enum staleness_weight {
	STALENESS_SQRT, /* 1 / sqrt(1 + t) */
	STALENESS_INVERSE, /* 1 / (1 + t) */
	STALENESS_CONSTANT, /* 1 */
};
/* By what the sum of weighted deltas is divided. */
enum staleness_divide {
	STALENESS_BY_COUNT, /* by the sum of the weights that fresh deltas would have: a stale round moves the model less */
	STALENESS_BY_WEIGHTS, /* by the sum of the weights: a mean */
};
struct staleness_spec {
	enum staleness_weight weight;
	enum staleness_divide divide;
};

struct aggregate_spec {
	struct rule_spec rule;
	struct staleness_spec staleness;
	bool normalise; /* FedNova: deltas are scaled to the same amount of local work */
	bool normalise_given; /* `normalise` is in the document, not a default */
	/* The largest factor, at least 1; 0: no bound; below 0: not given, so no bound. */
	double normalise_max;
	char optimizer[RECIPE_NAME_MAX]; /* "sgd" */
	double rate, momentum; /* default 1, 0 */
	bool nesterov; /* sgd */
	double beta1, beta2, tau; /* adagrad, yogi, adam; default 0.9, 0.99, 1e-3 */
	struct schedule_spec schedule; /* of the rate */
	struct scale_spec scale; /* of the rate, on top of the schedule */
	double max_norm; /* 0: no bound; a delta with a larger L2 norm is refused */
	uint64_t max_examples; /* the most a device may claim; default 1,000,000 */
	uint32_t variates; /* recipe.local.variates: a second vector follows each delta; 0: none */
};

/* How new models reach devices that hold an older one; see difference.h. */
struct download_spec {
	char codec[RECIPE_NAME_MAX]; /* "": models as they are, whole */
	bool feedback; /* what a round's codec lost is added to the next round's difference */
};

/* What says which model is better. */
enum monitor_metric {
	MONITOR_NONE, /* nothing measures the job's models */
	MONITOR_ACCURACY,
	MONITOR_LOSS,
	MONITOR_OWN, /* "metrics.NAME": what trainers report under this name */
};

struct monitor_spec {
	enum monitor_metric metric;
	bool rises; /* more is better */
	char name[RECIPE_NAME_MAX]; /* of MONITOR_OWN, else "" */
};

/* Which models of a job are kept. */
#define JOB_KEEP_BEST_MAX 16
#define JOB_KEEP_CONFIGURED UINT32_MAX /* as [retention] says */
struct keep_spec {
	uint32_t last; /* the newest */
	uint32_t every; /* the model of each so many rounds; 0: none for this reason */
	uint32_t best; /* the best by the monitor's metric, 1..JOB_KEEP_BEST_MAX */
};

struct stop_spec {
	uint64_t rounds; /* 0: no limit */
	uint64_t reports; /* in models, over all rounds; 0: no limit */
	double seconds; /* since the submission; 0: no limit */
	bool has_accuracy, has_loss, has_own;
	double accuracy, loss; /* reached when metric >= accuracy, or <= loss */
	/* Of the monitor's own metric: reached when metric >= own if it rises, else when metric <= own. */
	double own;
};

/* What is done when a metric collapses; round/policy/guard.h says when. */
enum guard_metric { GUARD_ACCURACY, GUARD_LOSS, GUARD_OWN }; /* own: the monitor's */
enum guard_action { GUARD_DO_STOP, GUARD_DO_PAUSE, GUARD_DO_ROLLBACK };

#define GUARD_WINDOW_MAX 32 /* the most models that are held for a rollback */

struct guard_spec {
	bool on;
	enum guard_metric metric;
	bool rises; /* of an own metric: more is better */
	double drop; /* of a metric that rises: a round is bad if more than this below the best */
	double factor; /* of a metric that falls: a round is bad if more than this times the best */
	uint32_t window; /* last good rounds, among which the best is sought, 1..GUARD_WINDOW_MAX */
	uint32_t rounds; /* bad rounds in a row that make a collapse, >= 1 */
	enum guard_action action;
	uint32_t times; /* how many rollbacks; the next one also pauses the job */
};

struct job_spec {
	char name[RECIPE_NAME_MAX];
	bool only_evaluates; /* "kind": "evaluate": it has no rounds, devices evaluate its model */
	uint64_t seed;
	struct recipe recipe;
	struct round_spec round;
	struct select_spec select;
	struct select_spec evaluators; /* EVALUATE_PROGRAM: either labels or devices */
	int64_t priority;
	uint32_t share; /* of the devices' time, beside jobs of the same priority */
	struct aggregate_spec aggregate;
	struct download_spec download;
	struct stop_spec stop;
	struct guard_spec guard;
	struct monitor_spec monitor;
	struct keep_spec keep;
};

/* Parses a whole document, unknown keys being errors. `why` names the key by its path
 * and, where one is near, the key that was meant. Names of rules and server optimizers are not looked up here: the
 * coordinator knows them. ERR_LIMIT for a document larger or deeper than the limits above. On failure *out is empty. */
ERR_MUST_USE enum err job_parse(
    struct job_spec *out, const char *text, size_t len, struct why *why);
/* Checks a new job for what job_parse accepts and nobody can mean. Jobs submitted before this check existed run on. ERR_INVALID. */
ERR_MUST_USE enum err job_check(const struct job_spec *job, struct why *why);
void job_deinit(struct job_spec *job);

/* Newer, better defaults. A coordinator notes them beside each new job whose document does not set the key, and in the records of the job's
 * rounds, so that a document alone keeps the meaning it had when submitted. As text: a JSON object from paths to values. FORMAT.md,
 * "Defaults of new jobs". */
struct job_stamp {
	bool normalise_off; /* true: "normalise" is noted as false; false: not noted */
	double normalise_max; /* below 0: not noted */
};
#define JOB_STAMP_TEXT_MAX 1024
/* The defaults to note beside a new job of this document. */
struct job_stamp job_stamp_new(const struct job_spec *job);
/* Puts the noted defaults into *job. */
void job_stamp_apply(struct job_spec *job, const struct job_stamp *stamp);
bool job_stamp_is_empty(const struct job_stamp *stamp);
bool job_stamp_equals(const struct job_stamp *a, const struct job_stamp *b);
struct json *job_stamp_json(const struct job_stamp *stamp); /* the caller's */
/* from NULL: nothing is noted. ERR_UNSUPPORTED for a stamp of a later version, ERR_INVALID; *out is empty after an error. */
ERR_MUST_USE enum err job_stamp_read(
    struct job_stamp *out, const struct json *from, struct why *why);
ERR_MUST_USE enum err job_stamp_parse(
    struct job_stamp *out, const char *text, size_t len, struct why *why);

/* Is the device among those that *s lists, or does *s list none? A text as long as an id is taken for an id, never for a device's name. */
bool job_names_device(const struct select_spec *s, const char *id, const char *name);
/* The fewest devices that a round needs. A buffered round takes several reports of one device. */
uint32_t job_round_devices(const struct round_spec *round);
/* Writes why no round can close with the devices that there are, for `plan` and for submissions; false if a round can. may: how many
 * devices may work on the job; offer: how many of these have offered the job's data set or trainer. */
#define JOB_ROUND_SENTENCE 320
bool job_round_lacks_devices(
    char out[JOB_ROUND_SENTENCE], const struct round_spec *round, uint64_t may);
bool job_round_lacks_data(char out[JOB_ROUND_SENTENCE], const struct round_spec *round,
    const struct data_spec *data, uint64_t offer, uint64_t may);
bool job_round_lacks_trainer(char out[JOB_ROUND_SENTENCE], const struct round_spec *round,
    const char *trainer, uint64_t offer, uint64_t may);
/* The words of the document, such as "buffered", "sqrt", "count". job_find_*: false for NULL and for an unknown word. */
const char *job_round_mode(enum round_mode mode);
const char *job_weight_word(enum staleness_weight weight);
const char *job_divide_word(enum staleness_divide divide);
bool job_find_weight(const char *word, enum staleness_weight *out);
bool job_find_divide(const char *word, enum staleness_divide *out);
/* Does the coordinator, or a program, evaluate this round's model before the round ends? True for each evaluate.every-th and the last. */
bool job_measures(const struct job_spec *job, uint64_t round, bool last);
/* Is a round's loss and accuracy (own: the monitor's own metric) measured on the round's base model? If not, on the model that it makes. */
bool job_measures_base(const struct job_spec *job, bool own);
/* Writes the monitor's word: "accuracy", "loss", "metrics.NAME"; "" for MONITOR_NONE. */
#define JOB_MONITOR_WORD 80
void job_monitor_word(char out[JOB_MONITOR_WORD], const struct monitor_spec *m);
/* Reads a monitor's word; `rises` becomes the default of that metric. False: the word names no metric. */
bool job_monitor_find(struct monitor_spec *out, const char *word);
/* A limit for new documents alone; job_parse still takes older ones with more. ERR_LIMIT for more than JOB_VALUES_MAX values. */
ERR_MUST_USE enum err job_bound(const char *text, size_t len, struct why *why);

#endif
