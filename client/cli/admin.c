#include "admin.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ca_fetch.h"
#include "cmd.h"
#include "json.h"
#include "messages.h"
#include "num.h"
#include "print.h"
#include "session.h"
#include "text_file.h"

#define SOCKET_DEFAULT "/run/rivulet/admin.sock"
#define ANSWER_MAX (64u << 20)
#define TOKEN_FILE_MAX 1024
#define WAIT_MAX_S 70 /* a minute's requests come back within it */
#define TRIES 30

static enum err
open_remote(struct cmd_admin *a, struct why *why)
{
	char home[PATH_MAX], url[1][ADDRESS_MAX];
	enum err e = identity_home(home, a->home, why);

	if (!e)
		e = address_normalise(url[0], a->url, why);
	if (e)
		return e;
	const struct session_options options = {
	    .home = home, .urls = (const char(*)[ADDRESS_MAX])url, .url_count = 1};
	return session_open(&a->session, &options, why);
}

/* The CAs that --ca names, or the one whose fingerprint stands in the token. */
static enum err
need_ca(const struct cmd_admin *a, const char *url, const char *token, char **out, struct why *why)
{
	struct token parts;
	struct trust trust;
	size_t len;
	enum err e;

	if (a->ca)
		return text_file_read(a->ca, IDENTITY_PEM_MAX, out, &len, why);
	if (messages_token_parse(&parts, token))
		return err_set(why, ERR_INVALID, "%s holds no token", a->token_file);
	const struct ca_fetch_from from = {.url = url, .fingerprint = parts.ca_hash};
	*out = malloc(CA_FETCH_PEM_MAX);
	e = *out ? ca_fetch(&trust, *out, &from, why) : err_set(why, ERR_NOMEM, "no memory");
	hash_wipe(&parts, sizeof(parts));
	return e;
}

static enum err
open_with_token(struct cmd_admin *a, struct why *why)
{
	char url[ADDRESS_MAX];
	char *token = NULL, *ca = NULL;
	size_t len = 0;
	enum err e = a->url ? address_normalise(url, a->url, why)
			    : err_set(why, ERR_INVALID, "--token-file goes with --url");

	if (!e)
		e = text_file_read(a->token_file, TOKEN_FILE_MAX, &token, &len, why);
	if (!e)
		cmd_admin_token_warn(a->token_file);
	while (!e && len > 0 && isspace((unsigned char)token[len - 1]))
		token[--len] = '\0';
	if (!e)
		e = need_ca(a, url, token, &ca, why);
	if (!e)
		e = session_open_token(&a->session, url, ca, token, why);
	if (token)
		hash_wipe(token, len);
	free(token);
	free(ca);
	return e;
}

enum err
cmd_admin_open(struct cmd_admin *a, struct why *why)
{
	const char *path = a->socket;

	a->session = NULL;
	if (a->token_file)
		return open_with_token(a, why);
	if (a->url)
		return open_remote(a, why);
	if (!path)
		path = getenv("RIVULET_SOCKET");
	if (!path || !*path)
		path = SOCKET_DEFAULT;
	a->socket = path;
	return session_open_socket(&a->session, path, why);
}

static void
close_session(struct cmd_admin *a)
{
	session_free(a->session);
	a->session = NULL;
}

/* Who only reads and is told to wait a little waits: pages of a long list may be more than a minute's worth of requests. */
static enum err
ask(struct cmd_admin *a, const struct session_call *call, struct transport_answer *answer,
    struct why *why)
{
	bool reads = strcmp(call->request.method, "GET") == 0;

	for (unsigned tries = 1;; tries++) {
		enum err e = session_do(a->session, call, answer, why);
		double wait = answer->retry_after_s;
		if (e || !reads || a->hasty || answer->status != 429 || wait < 0 ||
		    wait > WAIT_MAX_S || tries == TRIES)
			return e;
		transport_answer_deinit(answer);
		sleep((unsigned)ceil(wait));
	}
}

enum err
cmd_admin_call(struct cmd_admin *a, const char *method, const char *path, const struct buf *body,
    struct json **out, struct why *why)
{
	static const char *const headers[] = {"Content-Type: application/json", NULL};
	struct transport_answer answer;
	const struct session_call call = {.path = path,
	    .attempts = 1,
	    .request = {.method = method,
		.headers = body ? headers : NULL,
		.body = body ? buf_str(body) : NULL,
		.body_len = body ? body->len : 0,
		.answer_max = ANSWER_MAX}};
	enum err e = ask(a, &call, &answer, why);

	if (out)
		*out = NULL;
	if (e == ERR_CLOSED && !a->url)
		err_set(why, e,
		    "cannot reach a coordinator at %s; is rivuletd running? (--socket, --url)",
		    a->socket);
	a->problem = PROBLEM_NONE;
	if (!e)
		e = session_refusal(&answer, &a->problem, why);
	if (!e && out && answer.body.len > 0)
		e = json_parse(out, answer.body.data, answer.body.len, why);
	transport_answer_deinit(&answer);
	return e;
}

enum err
cmd_admin_put_query(struct buf *path, const char *name, const char *value)
{
	enum err e = buf_printf(path, "%c%s=", strchr(buf_str(path), '?') ? '&' : '?', name);

	for (const unsigned char *p = (const unsigned char *)value; *p && !e; p++)
		e = buf_printf(path, isalnum(*p) || strchr("-._~,:=", *p) ? "%c" : "%%%02X", *p);
	return e;
}

void
cmd_admin_token_warn(const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IRWXO))
		cmd_print_error("%s: everybody on this machine can use this token: chmod o= %s, "
				"and make a new one",
		    path, path);
}

bool
cmd_admin_duration(const char *text, uint64_t *seconds)
{
	static const struct {
		char letter;
		uint64_t factor;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
	char digits[16];
	size_t len = strlen(text);
	uint64_t factor = 1, v;

	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, text, len + 1);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (digits[len - 1] == units[i].letter) {
			factor = units[i].factor;
			digits[len - 1] = '\0';
			break;
		}
	if (!num_u64(digits, 1000000000, &v) || v == 0)
		return false;
	*seconds = v * factor;
	return true;
}

int
cmd_admin_end(struct cmd_admin *a, enum err e, const struct why *why)
{
	close_session(a);
	return e ? cmd_options_fail(e, why) : CMD_OK;
}

int
cmd_admin_list(const struct cmd_list *list, int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	const struct option_entry table[] = {
	    CMD_ADMIN_OPTIONS(&a), {NULL, 0, NULL, NULL, NULL, NULL}};
	struct option_words words;
	struct why why = {""};
	struct json *doc = NULL;
	int rc;

	if (!cmd_options_take(&words, table, &list->usage, argc, argv, &rc))
		return rc;
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = cmd_admin_call(&a, "GET", list->path, NULL, &doc, &why);
	if (!e && a.json)
		cmd_print_json(doc);
	else if (!e)
		list->print(json_get(doc, list->key));
	json_free(doc);
	return cmd_admin_end(&a, e, &why);
}

static void
print_line(const struct option_line *line)
{
	struct buf text;

	buf_init(&text, OPTION_TEXT_MAX);
	if (!option_put_line(&text, line))
		fputs(buf_str(&text), stdout);
	buf_deinit(&text);
}

void
cmd_admin_print_verbs(
    const char *parent, const struct option_entry *table, const struct cmd_verb *verbs)
{
	struct option_query q;
	struct buf text;

	buf_init(&text, OPTION_TEXT_MAX);
	if (!option_put_table(&text, parent, table))
		fputs(buf_str(&text), stdout);
	buf_deinit(&text);
	for (const struct cmd_verb *v = verbs; v->name; v++) {
		option_query_init(&q, parent, v->name);
		print_line(&(struct option_line){"command", q.path, NULL, NULL, v->help, '\0'});
		(void)v->main(2, q.argv);
	}
}

int
cmd_admin_verbs(const char *command, const struct cmd_verb *verbs, int argc, char **argv)
{
	bool help = false;
	const struct option_entry table[] = {
	    {"help", 'h', NULL, "name the subcommands", NULL, &help},
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	struct why why = {""};
	const char *path;
	int first = 1;

	if (option_is_query(&path, argc, argv)) {
		cmd_admin_print_verbs(path, table, verbs);
		return CMD_OK;
	}
	enum err e = option_parse_head(&first, table, argc, argv, &why);
	for (const struct cmd_verb *v = verbs; !e && !help && first < argc && v->name; v++)
		if (strcmp(v->name, argv[first]) == 0)
			return v->main(argc - first, argv + first);
	help &= !e;
	FILE *to = help ? stdout : stderr;
	if (e)
		fprintf(to, "rivulet: %s\n", why.text);
	else if (!help && first < argc)
		fprintf(to, "rivulet: unknown command \"%s %s\"\n", command, argv[first]);
	fprintf(to, "usage: rivulet %s COMMAND [...]\n\n", command);
	for (const struct cmd_verb *v = verbs; v->name; v++)
		fprintf(to, "  %-8s %s\n", v->name, v->help);
	return help ? CMD_OK : CMD_USAGE;
}
