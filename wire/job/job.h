#ifndef JOB_H
#define JOB_H
#include "recipe.h"

/* The job document: what a submitter asks for. Its JSON grammar stands in FORMAT.md. */
#define JOB_DOCUMENT_MAX (1u << 20)
/* A recipe must fit into messages of JSON_DEPTH_MAX that carry it. */
#define JOB_DEPTH_MAX 24
#define JOB_VALUES_MAX 16384 /* of a new document: reading each takes some 100 bytes */
#define JOB_GOAL_MAX 200000 /* for whose reports the record of a round has room */
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
	/* The open round takes deltas of tasks that are so many rounds old: 0 where late ones are dropped, 1 where they go into the next
	 * round. Buffered: default 10 x ceil(concurrency / goal). */
	uint32_t max_staleness;
	uint32_t per_device; /* deltas of one device in a round; default 1 */
	/* synchronous */
	double over_select; /* tasks handed out per wanted report, >= 1; default 1 */
	double grace_s; /* after quorum, default 10 */
	double sample_s; /* pick sample: how long askers are gathered before the draw; default 1 */
	bool sample; /* "pick": "sample" */
	/* buffered */
	uint32_t concurrency; /* tasks out at a time; default 2 x goal */
	double task_timeout_s; /* after it another device may have the task's place; default 3600 */
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
	bool hostile_given; /* it is no default */
	uint32_t picks; /* krum; default 1 */
	uint32_t bucket; /* deltas averaged before the rule; default 1 */
	bool nearest; /* each delta becomes the mean of those nearest to it */
	uint32_t iterations; /* geometric_median, default 8; centered_clipping, default 1 */
	double smoothing; /* geometric_median: least distance counted; default 1e-6 */
	double radius; /* centered_clipping */
	double bound; /* deltas are shortened to this L2 norm; 0: they are not */
	bool bound_median; /* to the median of the round's norms */
};

/* A rate that follows the number of reports; round/policy/scale.h says how. */
enum scale_by { SCALE_NONE, SCALE_LINEAR, SCALE_SQRT };

struct scale_spec {
	enum scale_by by; /* SCALE_NONE: the rate stays */
	uint32_t reports; /* for which the rate was chosen, >= 1 */
	uint32_t warmup; /* rounds from the factor used last to a new one */
};

/* What a delta counts that is t rounds old. */
enum staleness_weight {
	STALENESS_SQRT, /* 1 / sqrt(1 + t) */
	STALENESS_INVERSE, /* 1 / (1 + t) */
	STALENESS_CONSTANT, /* 1 */
};
/* By what the sum of weighted deltas is divided. */
enum staleness_divide {
	STALENESS_BY_COUNT, /* by what fresh ones would have: a stale round moves the model less */
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
	bool normalise_given; /* a word of the document, and no default */
	double
	    normalise_max; /* none by more than this, at least 1; 0: no bound; below 0: no word, and no bound */
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

/* Which of its models stay. */
#define JOB_KEEP_BEST_MAX 16
#define JOB_KEEP_CONFIGURED UINT32_MAX /* as [retention] says */
struct keep_spec {
	uint32_t last; /* the newest */
	uint32_t every; /* those of each so many rounds; 0: none for that */
	uint32_t best; /* by the monitor, 1..JOB_KEEP_BEST_MAX */
};

struct stop_spec {
	uint64_t rounds; /* 0: no limit */
	uint64_t reports; /* in models, over all rounds; 0: no limit */
	double seconds; /* since the submission; 0: no limit */
	bool has_accuracy, has_loss, has_own;
	double accuracy, loss; /* reached when metric >= accuracy, or <= loss */
	double own; /* of the monitor's own metric: reached as it rises or falls */
};

/* What is done when a metric collapses; round/policy/guard.h says when. */
enum guard_metric { GUARD_ACCURACY, GUARD_LOSS, GUARD_OWN }; /* own: the monitor's */
enum guard_action { GUARD_DO_STOP, GUARD_DO_PAUSE, GUARD_DO_ROLLBACK };

#define GUARD_WINDOW_MAX 32 /* as many models may be held for going back to */

struct guard_spec {
	bool on;
	enum guard_metric metric;
	bool rises; /* of an own metric: more is better */
	double drop; /* bad is more than this below the best */
	double factor; /* bad is more than this times the best */
	uint32_t window; /* good rounds among which the best is sought, 1..GUARD_WINDOW_MAX */
	uint32_t rounds; /* bad ones in a row that make a collapse, >= 1 */
	enum guard_action action;
	uint32_t times; /* rollback: so many, the next one pauses the job too */
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
/* What parses, and cannot be meant: asked of new jobs only, for those of before run on as they do. ERR_INVALID. */
ERR_MUST_USE enum err job_check(const struct job_spec *job, struct why *why);
void job_deinit(struct job_spec *job);

/* Defaults that are better than those that older documents were submitted with. A coordinator notes them beside each new job whose
 * document has no word of them, and in the records of its rounds: a document alone means what it always meant. Text: a JSON object from
 * paths to values. FORMAT.md, "Defaults of new jobs". */
struct job_stamp {
	bool normalise_off; /* "normalise" is false; false: nothing of it is noted */
	double normalise_max; /* below 0: none */
};
#define JOB_STAMP_TEXT_MAX 1024
/* What a job of this document has if it is new. */
struct job_stamp job_stamp_new(const struct job_spec *job);
/* The job is run by it from now on. */
void job_stamp_apply(struct job_spec *job, const struct job_stamp *stamp);
bool job_stamp_is_empty(const struct job_stamp *stamp);
bool job_stamp_equals(const struct job_stamp *a, const struct job_stamp *b);
struct json *job_stamp_json(const struct job_stamp *stamp); /* the caller's */
/* NULL: nothing is noted. ERR_UNSUPPORTED: of a later version; ERR_INVALID. *out is empty then. */
ERR_MUST_USE enum err job_stamp_read(
    struct job_stamp *out, const struct json *from, struct why *why);
ERR_MUST_USE enum err job_stamp_parse(
    struct job_stamp *out, const char *text, size_t len, struct why *why);

/* Is it among the devices listed, or are none? What could be a full id is one: no name takes the place of the device that has it. */
bool job_names_device(const struct select_spec *s, const char *id, const char *name);
/* Devices that a round needs, at the fewest: a buffer takes several reports of one. */
uint32_t job_round_devices(const struct round_spec *round);
/* Why no round can close with the devices that there are, as plan and submission say it: false if it can. `may`: devices that may work on
 * the job; `offer`: of those, that have offered its data set, or its trainer. */
#define JOB_ROUND_SENTENCE 320
bool job_round_lacks_devices(
    char out[JOB_ROUND_SENTENCE], const struct round_spec *round, uint64_t may);
bool job_round_lacks_data(char out[JOB_ROUND_SENTENCE], const struct round_spec *round,
    const struct data_spec *data, uint64_t offer, uint64_t may);
bool job_round_lacks_trainer(char out[JOB_ROUND_SENTENCE], const struct round_spec *round,
    const char *trainer, uint64_t offer, uint64_t may);
/* The document's words: "buffered", "sqrt", "count". A word that is none, or NULL: false. */
const char *job_round_mode(enum round_mode mode);
const char *job_weight_word(enum staleness_weight weight);
const char *job_divide_word(enum staleness_divide divide);
bool job_find_weight(const char *word, enum staleness_weight *out);
bool job_find_divide(const char *word, enum staleness_divide *out);
/* Does the coordinator, or a program, measure this round's model before its end? Each evaluate.every-th, and the last. */
bool job_measures(const struct job_spec *job, uint64_t round, bool last);
/* Is a round's figure (own: of the monitor's own metric) of its base? Else it is of the model that it makes. */
bool job_measures_base(const struct job_spec *job, bool own);
/* "accuracy", "loss", "metrics.NAME"; "" of none. */
#define JOB_MONITOR_WORD 80
void job_monitor_word(char out[JOB_MONITOR_WORD], const struct monitor_spec *m);
/* The metric of such a word, in the mode it has by itself; false: it is none. */
bool job_monitor_find(struct monitor_spec *out, const char *word);
/* What a new document has to keep beyond that; job_parse still takes older ones. ERR_LIMIT above JOB_VALUES_MAX. */
ERR_MUST_USE enum err job_bound(const char *text, size_t len, struct why *why);

#endif
