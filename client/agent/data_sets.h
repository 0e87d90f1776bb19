#ifndef DATA_SETS_H
#define DATA_SETS_H
#include "data.h"
#include "examples_file.h"
#include "messages.h"

struct events;
struct examples_task;

/*
 * The data sets a device has: loaded once, kept between rounds, with the latest division into training and validation
 * share. A set that cannot be loaded is tried again later; its files may be on a disk that is mounted late.
 */
struct data_sets_item {
	const struct settings_data *settings;
	struct dataset all;
	bool loaded;
	double tried_at;
	/* A text cut into windows of the length that the latest job wants; empty until a job wants windows. */
	struct dataset cut;
	/* The latest division into two shares; empty until a job wants one. */
	struct dataset train, validation;
	double share;
	uint64_t seed;
	bool split;
	char all_id[EXAMPLES_FILE_ID], cut_id[EXAMPLES_FILE_ID], split_id[EXAMPLES_FILE_ID];
};

struct data_sets {
	const struct settings *settings;
	struct data_sets_item items[SETTINGS_DATA_MAX];
	size_t count;
};

/* settings must outlive the data sets. Nothing is loaded yet. */
void data_sets_init(struct data_sets *s, const struct settings *settings);
void data_sets_deinit(struct data_sets *s);
/* Loads the sets that are not loaded and were not tried lately; true if one was loaded. Failures go to `events`. */
bool data_sets_refresh(struct data_sets *s, const struct events *events);
/* The data set of this name; NULL if there is none or it is not loaded. */
struct data_sets_item *data_sets_find(struct data_sets *s, const char *name);
/* How many examples the data set has for the job: of a text, windows. */
uint64_t data_sets_count(const struct data_sets_item *item, const struct data_spec *job);
/* Points *out to all examples that the job works on: of a text, windows of the length that the job wants. */
ERR_MUST_USE enum err data_sets_whole(
    struct data_sets_item *item, const struct data_spec *job, const struct dataset **out);
/* *out: the examples of one task; the caller ends *out with examples_task_deinit, also after a failure. */
ERR_MUST_USE enum err data_sets_give(struct data_sets_item *item, const struct task *task,
    const uint8_t device[32], struct examples_task *out);
/* The buffer that keeps the id of the job's examples (examples_file.h), until the next division. */
char *data_sets_examples(struct data_sets_item *item, const struct data_spec *job);

/* Fills the offer's list of data sets anew with those that are loaded. */
void data_sets_offer(const struct data_sets *s, struct offer *offer);

#endif
