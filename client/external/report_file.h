#ifndef REPORT_FILE_H
#define REPORT_FILE_H
#include <stdbool.h>

#include "abort_reason.h"
#include "finish.h"
#include "messages.h"

/* The report.json that a program leaves (docs/devices.md, External trainers): what it did. */
#define REPORT_FILE_MAX (64u << 10) /* bytes */

struct report_file {
	struct finish finish; /* finish.report is not set here */
	struct report report; /* what travels on in the signed one */
	bool has_report;
	enum abort_reason abort; /* of a report that is refused for its figures; else ABORT_NONE */
};

/* From the directory. ERR_NOTFOUND without one, ERR_LIMIT, ERR_INVALID, ERR_NUMERIC for a figure that is not finite. */
ERR_MUST_USE enum err report_file_read(
    struct report_file *out, const char *directory, struct why *why);

#endif
