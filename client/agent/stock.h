#ifndef STOCK_H
#define STOCK_H
#include "data.h"
#include "examples_file.h"
#include "messages.h"

struct events;
struct examples_task;

/*
 * The data sets a device has: loaded once, kept between rounds, with the latest division into training and validation
 * share. A set that cannot be loaded is tried again later; its files may be on a disk that is mounted late.
 */
struct stock_item {
	const struct settings_data *settings;
	struct dataset all;
	bool loaded;
	double tried_at;
	/* A text in windows of the latest job's length; empty while none was asked for. */
	struct dataset cut;
	/* The latest division; empty while it was not asked for. */
	struct dataset train, validation;
	double share;
	uint64_t seed;
	bool split;
	char all_id[EXAMPLES_FILE_ID], cut_id[EXAMPLES_FILE_ID], split_id[EXAMPLES_FILE_ID];
};

struct stock {
	const struct settings *settings;
	struct stock_item items[SETTINGS_DATA_MAX];
	size_t count;
};

/* settings must outlive the stock. Nothing is loaded yet. */
void stock_init(struct stock *s, const struct settings *settings);
void stock_deinit(struct stock *s);
/* Loads what is not loaded and was not tried lately; true if something changed. Failures go to `events`. */
bool stock_refresh(struct stock *s, const struct events *events);
/* NULL if there is no such set or it is not loaded. */
struct stock_item *stock_find(struct stock *s, const char *name);
/* How many examples the job finds in it. */
uint64_t stock_count(const struct stock_item *item, const struct data_spec *job);
/* Points to all examples that the job works on: of a text in windows as long as it wants. */
ERR_MUST_USE enum err stock_whole(
    struct stock_item *item, const struct data_spec *job, const struct dataset **out);
/* Points to training and validation share of what the job works on; with share 0 the training part is the whole set and no copy is made.
 * The seed is of the job and the device. */
ERR_MUST_USE enum err stock_split(struct stock_item *item, const struct data_spec *job,
    uint64_t seed, const struct dataset **train, const struct dataset **validation);
/* What a task works on; examples_task_deinit is due in either case. */
ERR_MUST_USE enum err stock_give(struct stock_item *item, const struct task *task,
    const uint8_t device[32], struct examples_task *out);
/* Where the id of these examples is kept (examples_file.h), until the next division. */
char *stock_examples(struct stock_item *item, const struct data_spec *job);

/* Renews the data sets of an offer: those that could be loaded. */
void stock_offer(const struct stock *s, struct offer *offer);

#endif
