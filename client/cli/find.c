#include "find.h"

#include <stdio.h>
#include <string.h>

#include "json.h"
#include "session.h"

#define WORD_MAX 64 /* an id; names are no longer */

static const struct kind {
	const char *word, *noun;
	size_t digits;
} kinds[] = {
    [CMD_FIND_JOB] = {"job", "job", 32},
    [CMD_FIND_DEVICE] = {"device", "device", 64},
    [CMD_FIND_MODEL] = {"model", "model", 64},
    [CMD_FIND_WEIGHTS] = {"weights", "job or model", 64},
    [CMD_FIND_TOKEN] = {"token", "token", 16},
};

bool
cmd_find_is_id(enum cmd_find_kind kind, const char *text)
{
	const size_t digits = kinds[kind].digits;

	return text && strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

static enum err
not_found(const struct kind *k, const char *word, struct why *why)
{
	return err_set(why, ERR_NOTFOUND, "no %s \"%.64s\"", k->noun, word);
}

/* Tokens have ids alone. */
static enum err
find_token(struct cmd_admin *a, const char *word, char id[CMD_FIND_ID], struct why *why)
{
	struct json *doc = NULL;
	size_t fits = 0;

	enum err e = cmd_admin_call(a, "GET", "/v1/tokens", NULL, &doc, why);
	const struct json *tokens = json_get(doc, "tokens");
	for (const struct json *t = json_first(tokens); t && !e; t = json_next(t)) {
		const char *own = json_string(json_get(t, "id"));
		if (!cmd_find_is_id(CMD_FIND_TOKEN, own) || !*word ||
		    strncmp(own, word, strlen(word)) != 0)
			continue;
		snprintf(id, CMD_FIND_ID, "%s", own);
		fits++;
	}
	json_free(doc);
	if (!e && fits == 0)
		return not_found(&kinds[CMD_FIND_TOKEN], word, why);
	if (!e && fits > 1)
		return err_set(
		    why, ERR_INVALID, "%zu tokens fit \"%.60s\"; give the id", fits, word);
	return e;
}

enum err
cmd_find(struct cmd_admin *a, enum cmd_find_kind kind, const char *word, char id[CMD_FIND_ID],
    struct why *why)
{
	static const char good[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
	const struct kind *k = &kinds[kind];
	struct json *doc = NULL;
	struct buf path;

	if (cmd_find_is_id(kind, word)) {
		memcpy(id, word, k->digits + 1);
		return ERR_OK;
	}
	bool plain = word[strspn(word, good)] == '\0';
	if (!*word || strlen(word) > WORD_MAX || (kind == CMD_FIND_TOKEN && !plain))
		return not_found(k, word, why);
	if (kind == CMD_FIND_TOKEN)
		return find_token(a, word, id, why);
	buf_init(&path, 3 * WORD_MAX + 48);
	enum err e = buf_printf(&path, "/v1/find?kind=%s", k->word);
	if (!e)
		e = cmd_admin_put_query(&path, "word", word);
	if (!e)
		e = cmd_admin_call(a, "GET", buf_str(&path), NULL, &doc, why);
	buf_deinit(&path);
	/* Older ones take no escapes, and some characters nobody takes. */
	if (!plain && a->problem == PROBLEM_BAD_REQUEST)
		return not_found(k, word, why);
	if (a->problem == PROBLEM_AMBIGUOUS)
		e = ERR_INVALID;
	else if (kind == CMD_FIND_JOB && a->problem == PROBLEM_NOT_FOUND)
		err_set(
		    why, e, "this coordinator is older and looks up no names: give the full id");
	const char *found = json_string(json_get(doc, "id"));
	if (!e && !cmd_find_is_id(kind, found))
		e = err_set(why, ERR_CORRUPT, "what came is no id");
	if (!e)
		memcpy(id, found, k->digits + 1);
	json_free(doc);
	return e;
}
