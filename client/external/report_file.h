#ifndef REPORT_FILE_H
#define REPORT_FILE_H
#include <stdbool.h>

#include "finish.h"

/* The report.json that a program leaves (docs/devices.md, External trainers): what it did. */
#define REPORT_FILE_MAX (64u << 10) /* bytes */
#define REPORT_FILE_AFTER_MAX 64 /* files of tensors */
#define REPORT_FILE_NAME_MAX 128
#define REPORT_FILE_SAID_MAX 2048 /* last bytes of the text why the task is given back */

struct report_file {
	struct finish finish; /* finish.report is not set here */
	struct report report; /* the figures for the report that the device signs */
	bool has_report;
	struct counts *counts; /* of the evaluation, as the recipe asks; the caller frees them */
	/* Why the task is given back: by the program, with a word of its own, or because of what the report says. Else ABORT_NONE. */
	struct abort_cause cause;
	/* The program's text why it gives the task back, if longer than a sentence; else "". */
	char said[REPORT_FILE_SAID_MAX];
	/* Names of the files with tensors in the directory: after.safetensors, if the report names none. */
	char after[REPORT_FILE_AFTER_MAX][REPORT_FILE_NAME_MAX];
	size_t after_count;
};

/* Reads report.json from the open directory. The report of a task that evaluates has only the figures "evaluate" and "metrics", and no
 * tensors. ERR_NOTFOUND without a report, ERR_LIMIT, ERR_INVALID, ERR_NUMERIC for a figure that is not finite, ERR_DENIED if
 * the program gives the task back: `why` is then the program's text, if that is a sentence. */
ERR_MUST_USE enum err report_file_read(
    struct report_file *out, int directory, const struct task *task, struct why *why);

#endif
