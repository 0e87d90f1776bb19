#include <stdio.h>
#include <string.h>
#include <time.h>

#include "admin.h"
#include "cmd.h"
#include "file.h"
#include "messages.h"
#include "num.h"
#include "print.h"

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
		printf("%s\n", token);
	json_free(doc);
	buf_deinit(&body);
	return e;
}

static int
token_create(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	struct token_request request = {.uses = 1};
	const char *uses = NULL, *expires = "24h", *role = NULL, *labels = NULL, *file = NULL;
	const struct cmd_option table[] = {
	    {"access", 0, NULL, "an access token: for --token-file, joins nobody", NULL,
		&request.access},
	    {"uses", 0, "N", "how many devices may join with it (default 1)", &uses, NULL},
	    {"expires", 0, "TIME", "as 30m, 24h (default), 7d", &expires, NULL},
	    {"role", 0, "ROLE",
		"device (default), reader, submitter or admin; with --access reader (default) or "
		"submitter",
		&role, NULL},
	    {"label", 0, "K=V", "labels of those devices, several with commas", &labels, NULL},
	    {"output", 'o', "FILE", "write it there with mode 0600 instead of printing it", &file,
		NULL},
	    CMD_ADMIN_OPTIONS(&a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct cmd_usage usage = {"token create [--access] [--uses N] [--expires 24h] "
					"[--role ROLE] [--label k=v] [-o FILE]",
	    "Makes a token: for joining, or with --access for reading or submitting from "
	    "elsewhere\n"
	    "without a certificate. It is shown once; the coordinator keeps only its hash.",
	    0, 0};
	struct cmd_words words;
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	if (!role)
		role = request.access ? "reader" : "device";
	if (request.access && (uses || labels))
		err_set(&why, ERR_INVALID, "--uses and --label are for joining, not for --access");
	else if ((uses && (!num_u64(uses, 1000000, &request.uses) || request.uses == 0)) ||
	    !cmd_admin_duration(expires, &request.expires_s) ||
	    strlen(role) >= sizeof(request.role))
		err_set(&why, ERR_INVALID, "bad --uses, --expires or --role");
	else
		(void)!take_labels(&request, labels, &why);
	if (*why.text) {
		fprintf(stderr, "rivulet: %s\nusage: rivulet %s\n", why.text, usage.usage);
		return CMD_USAGE;
	}
	strcpy(request.role, role);
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = create(&a, &request, file, &why);
	return cmd_admin_end(&a, e, &why);
}

static void
print_tokens(const struct json *tokens)
{
	static const char *const heads[] = {
	    "TOKEN", "KIND", "ROLE", "USES", "LEFT", "CREATED", "EXPIRES", "STATE", "LABELS"};
	struct cmd_table t;
	double now = (double)time(NULL), expires;

	cmd_print_start(&t, heads, 9);
	for (size_t i = 0; i < json_count(tokens); i++) {
		const struct json *token = json_at(tokens, i);
		bool revoked = false, access = false;
		(void)json_bool(json_get(token, "revoked"), &revoked);
		(void)json_bool(json_get(token, "access"), &access);
		cmd_print_text(&t, token, "id");
		cmd_print_cell(&t, "%s", access ? "access" : "join");
		cmd_print_text(&t, token, "role");
		cmd_print_count(&t, access ? NULL : token, "uses");
		cmd_print_count(&t, access ? NULL : token, "uses_left");
		cmd_print_age(&t, token, "created_at");
		cmd_print_age(&t, token, "expires_at");
		bool late = json_double(json_get(token, "expires_at"), &expires) && expires < now;
		cmd_print_cell(&t, "%s", revoked ? "revoked" : late ? "expired" : "valid");
		cmd_print_labels(&t, token, "labels");
	}
	cmd_print_end(&t);
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
	const struct cmd_option table[] = {
	    CMD_ADMIN_OPTIONS(&a), {NULL, 0, NULL, NULL, NULL, NULL}};
	const struct cmd_usage usage = {"token revoke ID " CMD_ADMIN_USAGE,
	    "Makes a token useless. Devices that joined with it stay.", 1, 1};
	struct cmd_words words;
	struct why why = {""};
	char path[64];
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	const char *id = words.words[0];
	if (strlen(id) != 16 || id[strspn(id, "0123456789abcdef")]) {
		fprintf(stderr, "rivulet: a token id has 16 hex digits\n");
		return CMD_USAGE;
	}
	snprintf(path, sizeof(path), "/v1/tokens/%s", id);
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = cmd_admin_call(&a, "DELETE", path, NULL, NULL, &why);
	if (!e && a.json)
		printf("{\"id\": \"%s\", \"revoked\": true}\n", id);
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
