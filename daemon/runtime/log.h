#ifndef LOG_H
#define LOG_H
#include <stdbool.h>
#include <stddef.h>

/*
 * One line per event to stderr: "level event key=value ...", with the journald priority prefix ("<6>") when stderr is
 * the journal and a time stamp (UTC) otherwise. Values are quoted when they hold anything but [A-Za-z0-9_.:/+-];
 * control characters never get through. A line is written with one write(2), at most 1 KiB. Any thread.
 * The process-wide level is the only global state. Never log keys, tokens or raw input.
 */
enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

void log_set_level(enum log_level level);

/* A line is built from pairs: log_event(LOG_LEVEL_INFO, "round.committed", LOG_S("job", hex), LOG_U("round", 3)) */
struct log_pair {
	const char *key; /* NULL ends the list */
	enum { LOG_STRING, LOG_UNSIGNED, LOG_DOUBLE } kind;
	const char *s;
	unsigned long long u;
	double d;
};
#define LOG_S(k, v) ((struct log_pair){.key = (k), .kind = LOG_STRING, .s = (v)})
#define LOG_U(k, v) ((struct log_pair){.key = (k), .kind = LOG_UNSIGNED, .u = (v)})
#define LOG_D(k, v) ((struct log_pair){.key = (k), .kind = LOG_DOUBLE, .d = (v)})
#define log_event(level, ...) LOG_EVENT_(level, __VA_ARGS__, {.key = NULL})
#define LOG_EVENT_(level, event, ...) \
	log_pairs(level, event, (const struct log_pair[]){__VA_ARGS__})

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

void log_pairs(enum log_level level, const char *event, const struct log_pair *pairs);

#endif
