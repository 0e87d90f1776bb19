#ifndef LOG_H
#define LOG_H
#include <stdbool.h>
#include <stddef.h>

#include "line.h"

/*
 * One line per event to stderr, as line.h prints it. A line is written with one write(2), at most 1 KiB. Any thread.
 * The process-wide level and format are the only global state. Never log keys, tokens or raw input.
 */
enum log_level {
	LOG_LEVEL_ERROR = LINE_ERROR,
	LOG_LEVEL_WARN = LINE_WARN,
	LOG_LEVEL_INFO = LINE_INFO,
	LOG_LEVEL_DEBUG = LINE_DEBUG
};

void log_set_level(enum log_level level);
void log_set_format(enum line_format format);

/* A line is built from pairs: log_event(LOG_LEVEL_INFO, "round.committed", LOG_S("job", hex), LOG_U("round", 3)) */
#define LOG_S(k, v) LINE_S(k, v)
#define LOG_U(k, v) LINE_U(k, v)
#define LOG_D(k, v) LINE_D(k, v)
#define log_event(level, ...) LOG_EVENT_(level, __VA_ARGS__, {.key = NULL})
#define LOG_EVENT_(level, event, ...) \
	log_pairs(level, event, (const struct line_pair[]){__VA_ARGS__})

/* log_event for events that anybody outside can cause at will: at most LOG_CROWD lines a second, over all such events. How many lines
 * were left out is logged before the next line, as log.skipped. */
#define LOG_CROWD 20
#define log_limited(level, ...) \
	do { \
		if (log_has_room(level)) \
			log_event(level, __VA_ARGS__); \
	} while (0)
bool log_has_room(enum log_level level);
/* How many lines were left out since the start. */
unsigned long long log_skipped(void);

void log_pairs(enum log_level level, const char *event, const struct line_pair *pairs);

#endif
