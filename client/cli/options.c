#include "options.h"

#include <stdio.h>

#include "buf.h"
#include "cmd.h"
#include "option.h"
#include "print.h"

bool
cmd_options_take(struct option_words *words, const struct option_entry *table,
    const struct option_usage *usage, int argc, char **argv, int *rc)
{
	struct buf text;

	buf_init(&text, OPTION_TEXT_MAX);
	enum option_answer answer = option_take(words, "rivulet", table, usage, argc, argv, &text);
	fputs(buf_str(&text), answer == OPTION_WRONG ? stderr : stdout);
	buf_deinit(&text);
	*rc = answer == OPTION_WRONG ? CMD_USAGE : CMD_OK;
	return answer == OPTION_GO;
}

static int
exit_code(enum err e)
{
	switch (e) {
	case ERR_OK:
		return CMD_OK;
	case ERR_NOTFOUND:
		return CMD_NOT_FOUND;
	case ERR_DENIED:
	case ERR_EXISTS:
	case ERR_STATE:
		return CMD_DENIED;
	case ERR_CLOSED:
	case ERR_TIMEOUT:
		return CMD_UNREACHABLE;
	case ERR_INVALID:
	case ERR_UNSUPPORTED:
		return CMD_SETTINGS;
	case ERR_CORRUPT:
		return CMD_CORRUPT;
	default:
		return CMD_FAILED;
	}
}

int
cmd_options_fail(enum err e, const struct why *why)
{
	cmd_print_error("%s", why && *why->text ? why->text : err_name(e));
	return exit_code(e);
}
