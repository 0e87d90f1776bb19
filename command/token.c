#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "admin.h"
#include "clock.h"
#include "cmd.h"
#include "file.h"
#include "find.h"
#include "json.h"
#include "messages.h"
#include "num.h"
#include "print.h"
#include "session.h"

#define LABELS_MAX 32

/* "k=v,k=v" into the request. */
static enum err
take_labels(struct token_request *r, const char *text, struct why *why)
{
	for (const char *p = text; p && *p;) {
		size_t len = strcspn(p, ",");
		const char *eq = memchr(p, '=', len);
		if (!eq || eq == p || (size_t)(eq - p) >= RECIPE_NAME_MAX ||
		    len - (size_t)(eq - p) - 1 >= RECIPE_NAME_MAX || r->label_count == LABELS_MAX)
			return err_set(
			    why, ERR_INVALID, "--label wants key=value, several with commas");
		snprintf(r->labels[r->label_count].key, RECIPE_NAME_MAX, "%.*s", (int)(eq - p), p);
		snprintf(r->labels[r->label_count].value, RECIPE_NAME_MAX, "%.*s",
		    (int)(len - (size_t)(eq - p) - 1), eq + 1);
		r->label_count++;
		p += len + (p[len] == ',');
	}
	return ERR_OK;
}

/* The coordinator says what of it does not go together. */
static enum err
take_names(struct token_request *r, const char *name, const char *prefix, struct why *why)
{
	if ((name && strlen(name) >= sizeof(r->name)) ||
	    (prefix && strlen(prefix) >= sizeof(r->name_prefix)))
		return err_set(
		    why, ERR_INVALID, "a name has at most %zu bytes", sizeof(r->name) - 1);
	snprintf(r->name, sizeof(r->name), "%s", name ? name : "");
	snprintf(r->name_prefix, sizeof(r->name_prefix), "%s", prefix ? prefix : "");
	return ERR_OK;
}

/* The words of the command's options; NULL: not given. */
struct asked {
	const char *uses, *expires, *role, *owner, *labels, *name, *prefix, *file;
};

static enum err
take_options(struct token_request *r, const struct asked *o, struct why *why)
{
	/* Nobody joins with this role. */
	r->access |= o->role && strcmp(o->role, "metrics") == 0;
	const char *role = o->role ? o->role : r->access ? "reader" : "device";
	if (r->access && (o->uses || o->labels || r->suspended))
		return err_set(why, ERR_INVALID,
		    "--uses, --label and --suspended are for joining, not for --access");
	if (o->uses && (!num_u64(o->uses, 1000000, &r->uses) || r->uses == 0))
		return err_set(why, ERR_INVALID, "--uses wants a number from 1 to 1000000");
	if (!cmd_admin_duration(o->expires, &r->expires_s))
		return err_set(why, ERR_INVALID, "--expires wants a time like 30m, 24h or 7d");
	if (strlen(role) >= sizeof(r->role) ||
	    (o->owner && (!r->access || strlen(o->owner) >= sizeof(r->owner))))
		return err_set(why, ERR_INVALID, "bad --role or --owner (which is for --access)");
	strcpy(r->role, role);
	strcpy(r->owner, o->owner ? o->owner : "");
	enum err e = take_labels(r, o->labels, why);
	return e ? e : take_names(r, o->name, o->prefix, why);
}

static enum err
create(struct cmd_admin *a, const struct token_request *request, const char *file, struct why *why)
{
	struct buf body;
	struct json *doc = NULL;
	char line[TOKEN_TEXT_MAX + 2];

	buf_init(&body, 64u << 10);
	enum err e = messages_token_encode(&body, request);
	if (e)
		err_set(why, e, "the request cannot be written: %s", err_name(e));
	else
		e = cmd_admin_call(a, "POST", "/v1/tokens", &body, &doc, why);
	const char *token = json_string(json_get(doc, "token"));
	if (!e && (!token || strlen(token) >= TOKEN_TEXT_MAX))
		e = err_set(why, ERR_INVALID, "the answer holds no token");
	if (!e && file) {
		snprintf(line, sizeof(line), "%s\n", token);
		e = file_write(file, line, strlen(line), 0600, why);
	}
	if (!e && a->json)
		cmd_print_json(doc);
	else if (!e && !file)
		cmd_print_line("%s", token);
	json_free(doc);
	buf_deinit(&body);
	return e;
}

static int
token_create(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	struct token_request request = {.uses = 1};
	struct asked asked = {.expires = "24h"};
	const struct option_entry table[] = {
	    {"access", 0, NULL, "an access token: for --token-file, joins nobody", NULL,
		&request.access},
	    {"uses", 0, "N", "how many devices may join with it (default 1)", &asked.uses, NULL},
	    {"expires", 0, "TIME", "as 30m, 24h (default), 7d", &asked.expires, NULL},
	    {"role", 0, "ROLE",
		"device (default), reader, submitter or admin; with --access reader (default), "
		"submitter or metrics",
		&asked.role, NULL},
	    {"owner", 0, "NAME",
		"with --access: whose the jobs and models are (default: the token's)", &asked.owner,
		NULL},
	    {"label", 0, "K=V", "labels of those devices, several with commas", &asked.labels,
		NULL},
	    {"suspended", 0, NULL, "they begin suspended, until \"device resume\"", NULL,
		&request.suspended},
	    {"name", 0, "NAME", "the name of the one device that joins with it", &asked.name, NULL},
	    {"name-prefix", 0, "TEXT", "what names of those devices begin with", &asked.prefix,
		NULL},
	    {"output", 'o', "FILE", "write it there with mode 0600 instead of printing it",
		&asked.file, NULL},
	    CMD_ADMIN_OPTIONS(&a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {"token create [--access] [--uses N] [--expires 24h] "
					   "[--role ROLE] [--owner NAME] [--label k=v] "
					   "[--suspended] [--name NAME | --name-prefix TEXT] "
					   "[-o FILE]",
	    "Makes a token: for joining, or with --access (which metrics is always) for reading "
	    "or\n"
	    "submitting from elsewhere without a certificate. It is shown once; the coordinator "
	    "keeps only its hash.",
	    0, 0};
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	if (take_options(&request, &asked, &why)) {
		cmd_print_error("%s", why.text);
		fprintf(stderr, "usage: rivulet %s\n", usage.usage);
		return CMD_USAGE;
	}
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = create(&a, &request, asked.file, &why);
	return cmd_admin_end(&a, e, &why);
}

static bool
is(const struct json *token, const char *key)
{
	bool yes = false;

	(void)json_bool(json_get(token, key), &yes);
	return yes;
}

static void
cell_kind(struct cmd_table *t, const struct json *token, const char *key)
{
	cmd_print_cell(t, "%s",
	    is(token, key)		 ? "access"
		: is(token, "suspended") ? "join,suspended"
					 : "join");
}

/* Of tokens for joining alone. */
static void
cell_uses(struct cmd_table *t, const struct json *token, const char *key)
{
	cmd_print_count(t, is(token, "access") ? NULL : token, key);
}

static void
cell_state(struct cmd_table *t, const struct json *token, const char *key)
{
	double expires;
	bool late = json_double(json_get(token, key), &expires) && expires < clock_wall();

	cmd_print_cell(t, "%s", is(token, "revoked") ? "revoked" : late ? "expired" : "valid");
}

/* What it gives those who join: "gw-7", or "north-*". */
static void
cell_name(struct cmd_table *t, const struct json *token, const char *key)
{
	const char *name = json_string(json_get(token, key));
	const char *prefix = json_string(json_get(token, "name_prefix"));

	if (prefix && *prefix)
		cmd_print_cell(t, "%s*", prefix);
	else
		cmd_print_cell(t, "%s", name && *name ? name : "-");
}

static void
print_tokens(const struct json *tokens)
{
	static const struct cmd_column columns[] = {
	    {"TOKEN", cmd_print_text, .key = "id"},
	    {"KIND", cell_kind, .key = "access"},
	    {"ROLE", cmd_print_text, .key = "role"},
	    {"OWNER", cmd_print_text, .key = "owner"},
	    {"USES", cell_uses, .key = "uses"},
	    {"LEFT", cell_uses, .key = "uses_left"},
	    {"CREATED", cmd_print_age, .key = "created_at"},
	    {"EXPIRES", cmd_print_until, .key = "expires_at"},
	    {"STATE", cell_state, .key = "expires_at"},
	    {"NAME", cell_name, .key = "name"},
	    {"USED", cmd_print_age, .key = "last_used"},
	    {"FROM", cmd_print_text, .key = "last_address"},
	    {"LABELS", cmd_print_labels, .key = "labels"},
	    {.head = NULL},
	};

	cmd_print_rows(columns, tokens);
}

static int
token_list(int argc, char **argv)
{
	static const struct cmd_list list = {
	    {"token list " CMD_ADMIN_USAGE,
		"Lists tokens for joining and for access, without their secrets.", 0, 0},
	    "/v1/tokens", "tokens", print_tokens};

	return cmd_admin_list(&list, argc, argv);
}

static int
token_revoke(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	bool stop = false;
	const struct option_entry table[] = {
	    {"stop-jobs", 0, NULL, "and stop all jobs of its owner", NULL, &stop},
	    CMD_ADMIN_OPTIONS(&a), {NULL, 0, NULL, NULL, NULL, NULL}};
	const struct option_usage usage = {"token revoke ID [--stop-jobs] " CMD_ADMIN_USAGE,
	    "Makes a token useless. Devices that joined with it stay. ID may be its beginning.", 1,
	    1};
	struct json *answer = NULL;
	uint64_t stopped = 0;
	struct option_words words;
	struct why why = {""};
	char id[CMD_FIND_ID], path[96];
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = cmd_find(&a, CMD_FIND_TOKEN, words.words[0], id, &why);
	if (!e) {
		snprintf(path, sizeof(path), "/v1/tokens/%s%s", id, stop ? "?stop-jobs=1" : "");
		e = cmd_admin_call(&a, "DELETE", path, NULL, &answer, &why);
	}
	if (!e && json_u64(json_get(answer, "stopped"), &stopped) && !a.json)
		printf("%" PRIu64 " jobs stopped\n", stopped);
	if (!e && a.json)
		cmd_print_line(
		    "{\"id\": \"%s\", \"revoked\": true, \"stopped\": %" PRIu64 "}", id, stopped);
	json_free(answer);
	return cmd_admin_end(&a, e, &why);
}

int
cmd_token_main(int argc, char **argv)
{
	static const struct cmd_verb verbs[] = {
	    {"create", token_create, "a new join token"},
	    {"list", token_list, "all tokens, without their secrets"},
	    {"revoke", token_revoke, "make one useless"},
	    {NULL, NULL, NULL},
	};

	return cmd_admin_verbs("token", verbs, argc, argv);
}
