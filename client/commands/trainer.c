#include "cmd.h"

#include "json.h"
#include "option.h"
#include "options.h"
#include "print.h"
#include "serve.h"

static int
print_offer(void)
{
	static const char *const lacking[] = {NULL};
	struct json *offer = serve_offer(lacking);

	cmd_print_json_line(offer);
	json_free(offer);
	return CMD_OK;
}

static enum err
train(void *context, const struct training_in *in, struct training_out *out, struct why *why)
{
	(void)context;
	return training_run(in, out, why);
}

static void
say(const char *reason)
{
	cmd_print_error("%s", reason);
}

int
cmd_trainer_main(int argc, char **argv)
{
	bool offer = false;
	const struct option_entry table[] = {
	    {"offer", 0, NULL, "print what it can do, as an agent asks", NULL, &offer},
	    {.name = NULL}};
	const struct option_usage usage = {.usage = "trainer DIR|--offer",
	    .about = "Does a task of a built-in job in DIR, where an agent has laid it out, as the "
		     "agent itself\n"
		     "would: [trainer builtin] exec = /usr/bin/rivulet trainer. Without DIR it "
		     "stays and is\n"
		     "given tasks (persistent = yes).",
	    .least = 0,
	    .most = 1};
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	if (offer)
		return print_offer();
	serve_catch_signals();
	const struct serve serve = {.train = train, .say = say};
	enum err e =
	    words.count == 1 ? serve_task(&serve, words.words[0], &why) : serve_agent(&serve, &why);
	return e ? cmd_options_fail(e, &why) : CMD_OK;
}
