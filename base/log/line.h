#ifndef LINE_H
#define LINE_H
#include <stdbool.h>
#include <stddef.h>

/*
 * A line of a log: level, event and pairs, printed as text or as a JSON object. Pure: who writes the line says when it is.
 *
 *     TIME level event key=value ...                                             LINE_TEXT
 *     {"time":"TIME","level":"level","event":"event","key":"value","count":3}    LINE_JSON
 *
 * In the journal a line begins with the priority ("<6>"), and as text without the time; the rest of a JSON line is the object. The printed line
 * is ASCII without control characters, whatever the values. Keys, levels and events are the program's own words.
 */
enum line_level { LINE_ERROR, LINE_WARN, LINE_INFO, LINE_DEBUG };
const char *line_level_name(int level); /* "info" for what is no level */

enum line_format { LINE_TEXT, LINE_JSON };
/* The words of the setting log_format, ended by NULL. */
extern const char *const line_formats[];

struct line_pair {
	const char *key; /* NULL ends the list */
	enum { LINE_STRING, LINE_UNSIGNED, LINE_DOUBLE } kind;
	const char *s; /* bytes; NULL: "" */
	unsigned long long u;
	double d; /* what is no number is null in JSON */
};
#define LINE_S(k, v) ((struct line_pair){.key = (k), .kind = LINE_STRING, .s = (v)})
#define LINE_U(k, v) ((struct line_pair){.key = (k), .kind = LINE_UNSIGNED, .u = (v)})
#define LINE_D(k, v) ((struct line_pair){.key = (k), .kind = LINE_DOUBLE, .d = (v)})
#define LINE_END ((struct line_pair){.key = NULL})

struct line {
	bool journal;
	int level; /* enum line_level */
	double wall; /* Unix time */
	const char *event;
	const struct line_pair *pairs;
};

/* Prints a line with its newline and returns its length, at most `room`, which is LINE_ROOM_MIN or more; no zero follows. A pair that does not
 * fit is left out whole, and so is one whose key the line has already: the line then ends in " ...", or has "cut":true. */
#define LINE_ROOM_MIN 256
size_t line_print(char *out, size_t room, enum line_format format, const struct line *l);
/* "TIME level ", or in the journal "<6>level ", and a zero: the beginning of a text line. Returns the length. */
size_t line_head(char *out, size_t room, const struct line *l);
/* Is stderr the journal's socket? The journal tells its writers which device and inode that has (systemd.exec(5)). */
bool line_in_journal(void);

#endif
