#include <stdio.h>

#include "buf.h"
#include "codec.h"
#include "metrics_inside.h"

/* One function per label: the word of a value, or NULL for one that is never counted. */
#define WORDS(name, text) \
	static const char *name##_word(const struct metrics_view *v, unsigned i) \
	{ \
		(void)v; \
		return text; \
	}

static const char *const classes[SERVER_CLASSES] = {"2xx", "3xx", "4xx", "5xx"};
static const char *const handshakes[SERVER_HANDSHAKES] = {
    [HANDSHAKE_FULL] = "full",
    [HANDSHAKE_RESUMED] = "resumed",
    [HANDSHAKE_EXPIRED] = "expired",
    [HANDSHAKE_OTHER_CA] = "other-ca",
    [HANDSHAKE_FAILED] = "failed",
    [HANDSHAKE_SILENT] = "silent",
};
static const char *const sources[SENT_KINDS] = {
    [SENT_WHOLE] = "whole",
    [SENT_DIFFERENCE] = "difference",
    [SENT_STATE] = "state",
    [SENT_RANGE] = "range",
};

static const char *
route_word(const struct metrics_view *v, unsigned i)
{
	return i <= v->route_count ? v->routes[i] : NULL;
}

static const char *
abort_word(const struct metrics_view *v, unsigned i)
{
	(void)v;
	return i == ABORT_UNKNOWN ? "other" : abort_reason_name((enum abort_reason)i);
}

WORDS(class, classes[i])
WORDS(error, problem_word((enum problem_type)i))
WORDS(handshake, handshakes[i])
WORDS(device_state, states_device_name((enum device_state)i))
WORDS(job_state, states_job_name((enum job_state)i))
WORDS(wait, wait_reason_name((enum wait_reason)i))
WORDS(stuck, stuck_name((enum stuck_kind)i))
WORDS(codec, codec_find(i)->name)
WORDS(source, sources[i])
WORDS(doubt, age_doubt_name((enum age_doubt)i))

const struct metrics_label metrics_label_route = {"route", 0, SERVER_ROUTES_MAX + 1, route_word};
const struct metrics_label metrics_label_class = {"class", 0, SERVER_CLASSES, class_word};
const struct metrics_label metrics_label_error = {
    "error", PROBLEM_NONE + 1, PROBLEM_UNKNOWN, error_word};
const struct metrics_label metrics_label_handshake = {
    "result", 0, SERVER_HANDSHAKES, handshake_word};
const struct metrics_label metrics_label_device_state = {
    "state", DEVICE_ACTIVE, DEVICE_LEFT + 1, device_state_word};
const struct metrics_label metrics_label_job_state = {
    "state", JOB_RUNNING, JOB_STOPPED + 1, job_state_word};
const struct metrics_label metrics_label_wait = {"reason", WAIT_NONE + 1, WAIT_UNKNOWN, wait_word};
const struct metrics_label metrics_label_unready = {
    "reason", WAIT_SPOOL_FULL, WAIT_UNKNOWN, wait_word};
const struct metrics_label metrics_label_abort = {
    "reason", ABORT_NONE + 1, ABORT_UNKNOWN + 1, abort_word};
const struct metrics_label metrics_label_stuck = {"kind", STUCK_NONE + 1, STUCK_KINDS, stuck_word};
const struct metrics_label metrics_label_codec = {"codec", 0, CODEC_IDS, codec_word};
const struct metrics_label metrics_label_source = {"source", 0, SENT_KINDS, source_word};
const struct metrics_label metrics_label_doubt = {
    "reason", AGE_BELIEVED + 1, AGE_LATER + 1, doubt_word};

enum err
metrics_print_text(struct buf *out, const char *text)
{
	enum err e = ERR_OK;

	for (; *text && !e; text++) {
		if (*text == '"' || *text == '\\')
			e = buf_printf(out, "\\%c", *text);
		else if (*text == '\n')
			e = buf_append(out, "\\n", 2);
		else
			e = buf_append(out, text, 1);
	}
	return e;
}
