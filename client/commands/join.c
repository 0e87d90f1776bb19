#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "cmd.h"
#include "hash.h"
#include "join.h"
#include "json.h"
#include "options.h"
#include "print.h"
#include "session.h"
#include "text_file.h"

#define TOKEN_FILE_MAX 1024

static enum err
read_token(char out[TOKEN_FILE_MAX], const char *path, struct why *why)
{
	char *text = NULL;
	size_t len = 0;

	if (strcmp(path, "-") == 0) {
		len = fread(out, 1, TOKEN_FILE_MAX - 1, stdin);
		out[len] = '\0';
		return len ? text_file_strip(out, &len, why)
			   : err_set(why, ERR_INVALID, "no token on standard input");
	}
	enum err e = text_file_read(path, TOKEN_FILE_MAX - 1, &text, &len, why);
	if (e)
		return e;
	cmd_admin_token_warn(path);
	memcpy(out, text, len + 1);
	hash_wipe(text, len);
	free(text);
	return ERR_OK;
}

static void
report(const struct identity *id, enum join_state state, const char *home, bool json)
{
	static const char *const words[] = {[JOIN_NEW] = "joined",
	    [JOIN_ALREADY] = "already joined",
	    [JOIN_AGAIN] = "joined again"};
	struct why remark;

	join_remark(&remark, id, state);
	if (*remark.text)
		cmd_print_error("%s", remark.text);
	if (!json) {
		cmd_print_line("%s %s as %s (role %s, device %.16s) in %s", words[state],
		    id->urls[0], id->name, id->role, id->device, home);
		return;
	}
	struct json *doc = json_object(), *urls = json_array();
	json_add_string(doc, "device", id->device);
	json_add_string(doc, "name", id->name);
	json_add_string(doc, "role", id->role);
	json_add_string(doc, "home", home);
	json_add_bool(doc, "new", state != JOIN_ALREADY);
	for (size_t i = 0; i < id->url_count; i++)
		json_push(urls, json_new_string(id->urls[i]));
	json_add(doc, "coordinators", urls);
	cmd_print_json(doc);
	json_free(doc);
}

static enum err
join(struct join_options *options, const char *token_file, bool json, struct why *why)
{
	struct identity id;
	enum join_state state;
	char token[TOKEN_FILE_MAX];
	/* A repeat must succeed even where the token's file is gone. */
	enum err e = join_run(&id, &state, options, why);

	if (e == ERR_NOTFOUND && !token_file) {
		struct why needed = *why;
		return err_set(why, ERR_INVALID,
		    "%.180s: --token-file FILE, or - for standard input", needed.text);
	}
	if (e == ERR_NOTFOUND) {
		e = read_token(token, token_file, why);
		options->token = token;
		if (!e)
			e = join_run(&id, &state, options, why);
		options->token = NULL;
		hash_wipe(token, sizeof(token));
	}
	if (!e)
		report(&id, state, options->home, json);
	return e;
}

int
cmd_join_main(int argc, char **argv)
{
	const char *token_file = NULL, *name = NULL, *home = NULL;
	bool json = false;
	const struct option_entry table[] = {
	    {"token-file", 0, "FILE", "where the join token is; - for standard input", &token_file,
		NULL},
	    {"name", 0, "NAME", "what people call this device (default: host name)", &name, NULL},
	    {"home", 0, "DIR", "where identity, models and deltas are kept", &home, NULL},
	    {"json", 0, NULL, "print JSON", NULL, &json},
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {
	    "join URL --token-file FILE|- [--name NAME] [--home DIR] [--json]",
	    "Makes this machine a device of a coordinator. A second time it does nothing, unless "
	    "the "
	    "coordinator\ndoes not know the device any more: then it joins again with its key.",
	    1, 1};
	struct option_words words;
	char dir[PATH_MAX];
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = identity_home(dir, home, &why);
	struct join_options options = {.url = words.words[0], .home = dir, .name = name};
	if (!e)
		e = join(&options, token_file, json, &why);
	return e ? cmd_options_fail(e, &why) : CMD_OK;
}
