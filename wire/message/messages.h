#ifndef MESSAGES_H
#define MESSAGES_H
#include "abort_reason.h"
#include "recipe.h"
#include "task_kind.h"

/*
 * The JSON messages of the HTTP API that devices and coordinator exchange: typed structs, one encode and one
 * decode each, side by side. Unknown fields are ignored (an old agent stays welcome); wrong types and values out of
 * range are ERR_INVALID with the field's name in why. Text from outside is length-limited by the struct.
 * ids are lower-case hex strings of exact length.
 */
#define MESSAGES_LIST_MAX 64
#define MESSAGES_PROTOCOL 1

struct offer_data {
	char name[RECIPE_NAME_MAX];
	uint64_t examples;
	/* Of a text, which a job's window cuts into examples; 0: no text, or not said. */
	uint64_t tokens;
	char (*classes)[RECIPE_NAME_MAX]; /* owned by the offer */
	size_t class_count;
};

typedef char message_name[RECIPE_NAME_MAX];

struct offer {
	char agent[32];
	uint64_t protocol;
	struct offer_data data[MESSAGES_LIST_MAX];
	size_t data_count;
	message_name trainers[MESSAGES_LIST_MAX];
	size_t trainer_count;
	/* Those of `trainers` that do tasks of kind evaluate. */
	message_name evaluators[MESSAGES_LIST_MAX];
	size_t evaluator_count;
	message_name codecs[MESSAGES_LIST_MAX];
	size_t codec_count;
	message_name layers[MESSAGES_LIST_MAX];
	size_t layer_count;
	message_name features[MESSAGES_LIST_MAX]; /* of recipe_feature_names */
	size_t feature_count;
	uint64_t memory_bytes;
	char held_models[MESSAGES_LIST_MAX][65];
	size_t held_count;
	char unsent[MESSAGES_LIST_MAX][33]; /* tasks done whose deltas still wait on the device */
	size_t unsent_count;
	uint64_t wait_s; /* how long the request may be held, 0..50 */
	uint64_t time_ms; /* the device's clock, Unix ms; 0: not said */
	bool has_disk_free;
	uint64_t disk_free_bytes; /* on the disk where the device keeps models and deltas */
	/* Why the device takes no work now, a word of enum wait_reason or of its owner's; "": ready. */
	char unready[32];
	char machine[65]; /* hash that tells machines apart (FORMAT.md); "": not said */
	bool says_figures; /* false: trainer_figures and evaluator_figures are not said */
	/* Bit i: trainers[i] or evaluators[i] gives the figures that a job asks for. */
	uint64_t trainer_figures, evaluator_figures;
	/* Jobs of which the device wants no tasks now because a task of theirs failed there. */
	struct offer_resting {
		uint8_t job[16];
		uint32_t seconds; /* until it wants tasks of the job again */
	} resting[MESSAGES_LIST_MAX];
	size_t resting_count;
};
ERR_MUST_USE enum err messages_offer_encode(struct buf *out, const struct offer *in);
ERR_MUST_USE enum err messages_offer_decode(
    struct offer *out, const char *text, size_t len, struct why *why);
void messages_offer_deinit(struct offer *o);
/* Does the trainer or evaluator of that name give figures? */
bool messages_offer_gives_figures(const struct offer *o, const char *name);
/* Notes in the offer whether the trainer or evaluator of that name gives figures. */
void messages_offer_set_figures(struct offer *o, const char *name, bool gives);

/* A task, or "wait": exactly one is set. */
struct task {
	bool wait;
	uint64_t wait_s; /* wait */
	/* Wait: not-selected, no-data, ineligible, paused, old-agent, no-job, job-full, ... */
	char reason[32];
	enum task_kind kind;
	char task[33];
	char job[33];
	uint64_t round;
	char model[65];
	uint64_t model_bytes;
	char from[65]; /* a model that the device holds: the difference to it is enough; "": none */
	uint64_t from_bytes; /* bytes of that difference */
	/* The coordinator's state that ends with its control variate; "": all zero. */
	char state[65];
	uint64_t state_bytes;
	uint64_t counted; /* the last round that this device's variate counts in; 0: none */
	/* With local.target_s in the recipe: the steps to train, after decoding also in recipe.local.amount. 0: without target_s. */
	uint64_t steps;
	uint64_t seed;
	/* The most examples that a device may claim, and so work on: a device with more draws a share. 0: not said. */
	uint64_t max_examples;
	double deadline_s; /* seconds left for the report */
	/* On encoding: the codec of upload.codec to use, "" if upload.codec names only one. */
	char codec[RECIPE_NAME_MAX];
	/* With a task or "wait": the certificate should be renewed soon, whatever its date. */
	bool renew;
	struct recipe recipe;
};
/* Encoding uses only recipe.text of the recipe. Decoding parses the recipe, not strictly. ERR_UNSUPPORTED: the task is of a kind that this
 * build does not know, or has a member other than kind, task, job and round that this build cannot read; these four members are set all the
 * same, so that the device can abort the task. */
ERR_MUST_USE enum err messages_task_encode(struct buf *out, const struct task *in);
ERR_MUST_USE enum err messages_task_decode(
    struct task *out, const char *text, size_t len, struct why *why);
void messages_task_deinit(struct task *t);

/* The signed report beside a manifest; at most 16 KiB of text, or, without counts, the 8 KiB that every coordinator takes; ERR_LIMIT
 * above. Every key is optional: numbers that are absent are NaN (examples 0), and what is not finite is left out of the text. Decoding
 * gives ERR_INVALID for what cannot be: more right labels than labels, or labels without how many were right. */
#define REPORT_MAX 16384
#define REPORT_PLAIN_MAX 8192
struct report_metric {
	char name[RECIPE_NAME_MAX];
	double value;
};
/* What a loss and an accuracy are means of: sums over everything that counted. */
#define REPORT_COUNT_MAX 1e18
struct report_counted {
	bool told; /* false: the device does not say, and no other member is set */
	double loss_count; /* the divisor of the mean loss: examples, or labels by their weights */
	bool has_labels; /* false: the device does not say how many labels counted and were right */
	uint64_t labels, right; /* right <= labels, those that counted */
};
/* The mean loss of a report: `loss` as the manifest has it, or NaN if nothing counted (the manifest then has 0). */
double messages_report_loss(const struct report_counted *t, double loss);
/* right / labels; NaN if no label counted. */
double messages_report_accuracy(const struct report_counted *t);
struct report {
	/* Over the whole training; an example counts as often as a step took it. */
	struct report_counted trained;
	bool has_evaluate;
	uint64_t eval_examples;
	double eval_loss; /* NaN if none */
	double eval_accuracy; /* 0..1; NaN if none */
	struct report_counted evaluated;
	struct report_metric metrics[MESSAGES_LIST_MAX];
	size_t metric_count;
	const struct counts
	    *counts; /* of the evaluation, for encoding; NULL: none, as after decoding */
};
ERR_MUST_USE enum err messages_report_encode(struct buf *out, const struct report *in);
ERR_MUST_USE enum err messages_report_decode(
    struct report *out, const char *text, size_t len, struct why *why);
/* Reads the counts that `wanted` asks for from a report's evaluation. *out is NULL if `wanted` is empty, or the report has no evaluation
 * or one without examples that counted. ERR_INVALID names what is missing, out of range or contradicts the rest; ERR_NOMEM. The caller
 * frees *out with counts_free. */
ERR_MUST_USE enum err messages_report_counts(struct counts **out, const struct figure_set *wanted,
    size_t classes, const char *text, size_t len, struct why *why);

/* POST /v1/join and its answer. */
struct join_request {
	uint8_t csr[2048]; /* DER; base64 in JSON */
	size_t csr_len;
	char name[RECIPE_NAME_MAX]; /* what people call the device; defaults to its host name */
};
struct join_answer {
	char device[65];
	char name[RECIPE_NAME_MAX];
	char role[16];
	char certificate[4096]; /* PEM */
	char ca[4096]; /* PEM */
	/* PEM of the certificate of the key that signs receipts; "" from a coordinator that does not tell. */
	char signer[4096];
	int64_t renew_after; /* Unix seconds */
};
ERR_MUST_USE enum err messages_join_encode(struct buf *out, const struct join_request *in);
ERR_MUST_USE enum err messages_join_decode(
    struct join_request *out, const char *text, size_t len, struct why *why);
ERR_MUST_USE enum err messages_joined_encode(struct buf *out, const struct join_answer *in);
ERR_MUST_USE enum err messages_joined_decode(
    struct join_answer *out, const char *text, size_t len, struct why *why);

/* POST /v1/tasks/{task}/abort. */
struct abort_request {
	struct abort_cause cause;
	/* The end of the trainer's output; encoding replaces what is not printable by '?'. */
	char log[2048];
};
ERR_MUST_USE enum err messages_abort_encode(struct buf *out, const struct abort_request *in);
ERR_MUST_USE enum err messages_abort_decode(
    struct abort_request *out, const char *text, size_t len, struct why *why);

/* RFC 9457 problem details. type is "urn:rivulet:error:" and a stable word. Decoding cuts title and detail to fit and
 * makes what is not printable '?'; absent members give "about:blank", "", 0 and "". */
struct problem {
	char type[96];
	char title[128];
	uint64_t status;
	char detail[256];
};
ERR_MUST_USE enum err messages_problem_encode(struct buf *out, const struct problem *in);
ERR_MUST_USE enum err messages_problem_decode(
    struct problem *out, const char *text, size_t len, struct why *why);

/* POST /v1/tokens. Absent: one use, one day, role "device" (an access token: "reader"), no labels. An access token goes
 * with requests instead of a certificate and joins nobody: it has no uses and no labels. */
struct token_request {
	bool access;
	uint64_t uses; /* 1..1,000,000 */
	uint64_t expires_s; /* from now; 1 second to 10 years */
	/* "device", "reader", "submitter", "admin"; an access token: "reader", "submitter", "metrics". */
	char role[16];
	/* An access token: the owner of jobs submitted with it; "": the token itself. */
	char owner[RECIPE_NAME_MAX];
	struct {
		char key[RECIPE_NAME_MAX], value[RECIPE_NAME_MAX];
	} labels[32];
	size_t label_count;
	/* The joining device's name (for one use), or how its name must begin; at most one of the two is set. */
	char name[RECIPE_NAME_MAX], name_prefix[RECIPE_NAME_MAX];
	bool suspended; /* who joins begins suspended; not of an access token */
};
ERR_MUST_USE enum err messages_token_encode(struct buf *out, const struct token_request *in);
ERR_MUST_USE enum err messages_token_decode(
    struct token_request *out, const char *text, size_t len, struct why *why);

/* POST /v1/devices/{device}/set, and /v1/devices/set of several. */
#define DEVICE_CHANGE_MAX \
	256 /* devices of one request, which each get a signed entry of the audit log */
struct device_change {
	char name[RECIPE_NAME_MAX]; /* "": stays */
	struct {
		char key[RECIPE_NAME_MAX], value[RECIPE_NAME_MAX];
		bool gone; /* the label is removed; it has no value then */
	} labels[32];
	size_t label_count;
	bool dry_run;
	/* Ids in hex; none: the device of the request's path. */
	char devices[DEVICE_CHANGE_MAX][65];
	size_t device_count;
};
ERR_MUST_USE enum err messages_change_encode(struct buf *out, const struct device_change *in);
ERR_MUST_USE enum err messages_change_decode(
    struct device_change *out, const char *text, size_t len, struct why *why);

/* A join token as text: "rvt1-" id(16 hex) "-" secret(64 hex) "-" SHA-256 of the CA's DER (64 hex). */
#define TOKEN_TEXT_MAX 160
struct token {
	uint8_t id[8];
	uint8_t secret[32];
	uint8_t ca_hash[32];
};
void messages_token_text(char out[TOKEN_TEXT_MAX], const struct token *in);
/* Takes nothing but the text, no white space around it. ERR_INVALID leaves *out alone. */
ERR_MUST_USE enum err messages_token_parse(struct token *out, const char *text);

#endif
