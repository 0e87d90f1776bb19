#ifndef ADMIN_H
#define ADMIN_H
#include <stdbool.h>

#include "option.h"
#include "options.h"
#include "session.h"

/* What the administration commands share: how they reach the coordinator, and calls that give JSON. */
struct cmd_admin {
	const char *socket, *url, *home, *token_file, *ca;
	bool json;
	bool hasty; /* a GET that is answered 429 is not repeated */
	struct session *session;
	enum problem_type problem; /* of the latest call, PROBLEM_NONE without one */
};

/* Entries for a command's option table. */
#define CMD_ADMIN_OPTIONS(a) \
	{"socket", 0, "PATH", "the coordinator's admin socket", &(a)->socket, NULL}, \
	    {"url", 0, "URL", "a remote coordinator, with the certificate of --home", &(a)->url, \
		NULL}, \
	    {"home", 0, "DIR", "identity for --url", &(a)->home, NULL}, \
	    {"token-file", 0, "FILE", "an access token for --url, instead of a certificate", \
		&(a)->token_file, NULL}, \
	    {"ca", 0, "FILE", "the CA to trust (default: by the token; verify: DIR/ca.pem)", \
		&(a)->ca, NULL}, \
	{ \
		"json", 0, NULL, "print JSON", NULL, &(a)->json \
	}
#define CMD_ADMIN_USAGE "[--socket PATH | --url URL [--token-file FILE]] [--json]"

/* Opens a session by --url, else by the socket of --socket, of $RIVULET_SOCKET, or /run/rivulet/admin.sock. */
ERR_MUST_USE enum err cmd_admin_open(struct cmd_admin *a, struct why *why);
/* Sends a request; body: JSON text or NULL. A GET that is answered 429 is repeated a few times, after the time that the answer says. out
 * may be NULL: the answer's body is not wanted; else the caller frees *out (NULL for an empty body). */
ERR_MUST_USE enum err cmd_admin_call(struct cmd_admin *a, const char *method, const char *path,
    const struct buf *body, struct json **out, struct why *why);
/* Appends "?name=value" to a path, "&name=value" to one with a query; what has no place in a value is escaped, but for commas. */
ERR_MUST_USE enum err cmd_admin_put_query(struct buf *path, const char *name, const char *value);
/* Warns on standard error if other users of this machine can read or write the token file. */
void cmd_admin_token_warn(const char *path);
/* "90", "90s", "15m", "24h", "7d" to seconds. */
bool cmd_admin_duration(const char *text, uint64_t *seconds);

/* A subcommand that takes no words, reads one document and prints a table of the array under `key`, or with --json all of it. */
struct cmd_list {
	struct option_usage usage;
	const char *path, *key;
	void (*print)(const struct json *array);
};
int cmd_admin_list(const struct cmd_list *list, int argc, char **argv);
/* Closes the session and returns the exit code for e; prints the reason if e is an error. */
int cmd_admin_end(struct cmd_admin *a, enum err e, const struct why *why);

/* Subcommands of a command ("job list"): a table and a loop. */
struct cmd_verb {
	const char *name;
	int (*main)(int argc, char **argv);
	const char *help;
};
int cmd_admin_verbs(const char *command, const struct cmd_verb *verbs, int argc, char **argv);
/* Prints the table of `parent` ("job", or "" for the program), and what each verb answers to OPTION_QUERY, behind a line of its own. */
void cmd_admin_print_verbs(
    const char *parent, const struct option_entry *table, const struct cmd_verb *verbs);

#endif
