#ifndef TASK_KIND_H
#define TASK_KIND_H

/*
 * What a task asks a device to do (FORMAT.md, "Task"): the number of a kind stands in a manifest's flags, its word in messages. Both
 * stay.
 */
enum task_kind {
	TASK_TRAIN = 0, /* ends with a delta */
	TASK_EVALUATE = 1, /* measure the model; ends with a report alone */
	TASK_UNKNOWN, /* a kind that this version does not know: a newer coordinator's */
};

/* The word of a kind; "" for TASK_UNKNOWN. */
const char *task_kind_name(enum task_kind k);
enum task_kind task_kind_find(const char *name);

#endif
