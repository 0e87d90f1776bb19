#ifndef REPORT_FILE_H
#define REPORT_FILE_H
#include <stdbool.h>

#include "finish.h"

/* The report.json that a program leaves (docs/devices.md, External trainers): what it did. */
#define REPORT_FILE_MAX (64u << 10) /* bytes */
#define REPORT_FILE_AFTER_MAX 64 /* files of tensors */
#define REPORT_FILE_NAME_MAX 128
#define REPORT_FILE_SAID_MAX 2048 /* of why it gives the task back, the last ones */

struct report_file {
	struct finish finish; /* finish.report is not set here */
	struct report report; /* what travels on in the signed one */
	bool has_report;
	struct counts *counts; /* of its evaluation, as the recipe asks; the caller's */
	/* The program gives the task back, in its own word; or it is to be, for what the report says. Else ABORT_NONE. */
	struct abort_cause cause;
	/* What it says of that, if it is longer than a sentence; else "". */
	char said[REPORT_FILE_SAID_MAX];
	/* Where the tensors are, in the directory: after.safetensors, if the report names nothing else. */
	char after[REPORT_FILE_AFTER_MAX][REPORT_FILE_NAME_MAX];
	size_t after_count;
};

/* From the open directory, of a task of this kind: one that evaluates has no figures but "evaluate" and "metrics", and no tensors.
 * ERR_NOTFOUND without one, ERR_LIMIT, ERR_INVALID, ERR_NUMERIC for a figure that is not finite, ERR_DENIED where
 * the program gives the task back: `why` is what it says then, if that is a sentence. */
ERR_MUST_USE enum err report_file_read(
    struct report_file *out, int directory, const struct task *task, struct why *why);

#endif
