#include "cmd.h"

#include <signal.h>

#include "json.h"
#include "net_spec.h"
#include "option.h"
#include "options.h"
#include "print.h"
#include "recipe.h"
#include "serve.h"

static volatile sig_atomic_t ending; /* SIGTERM, SIGINT: save what there is, and leave */

static void
on_signal(int sig)
{
	(void)sig;
	ending = 1;
}

static void
catch_signals(void)
{
	struct sigaction act = {.sa_handler = on_signal};

	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
}

/* --- `--offer` */

static struct json *
names(const char *const *list)
{
	struct json *out = json_array();

	for (; *list; list++)
		json_push(out, json_new_string(*list));
	return out;
}

/* What is the device's own need not be there; it does no harm. */
static int
print_offer(void)
{
	static const char *const kinds[] = {"train", "evaluate", NULL};
	struct json *offer = json_object();

	json_add(offer, "kinds", names(kinds));
	json_add(offer, "layers", names(net_spec_type_names()));
	json_add(offer, "features", names(recipe_feature_names()));
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
	catch_signals();
	const struct serve serve = {.train = train, .say = say, .ending = &ending};
	enum err e =
	    words.count == 1 ? serve_task(&serve, words.words[0], &why) : serve_agent(&serve, &why);
	return e ? cmd_options_fail(e, &why) : CMD_OK;
}
