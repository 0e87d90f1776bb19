#ifndef RESULT_H
#define RESULT_H
#include "directory.h"

/* What a program leaves in its task's directory: after.safetensors and report.json. Calls block on the disk. */

/* training_in.take: writes the trained tensors and those of this device alone, piece by piece. */
ERR_MUST_USE enum err result_take(
    void *directory, const struct training_source *after, struct why *why);
/* Writes report.json with the figures of the training or the evaluation. */
ERR_MUST_USE enum err result_report(
    const struct directory *d, const struct training_out *out, struct why *why);
/* Writes a report.json that gives the task back: with the reason's word and a sentence. */
ERR_MUST_USE enum err result_give_back(
    const char *path, enum abort_reason reason, const char *text, struct why *why);

#endif
