#include "trainer_offer.h"

#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "capabilities.h"
#include "err.h"
#include "events.h"
#include "messages.h"
#include "program.h"
#include "program_sandbox.h"
#include "task_kind.h"

#define GRACE_S 1
#define LOG_MAX 2048

static enum err
judge_end(const struct child_result *r, char *log, struct why *why)
{
	if (r->overflow)
		return err_set(
		    why, ERR_LIMIT, "its answer is longer than %u bytes", CAPABILITIES_MAX);
	if (r->asked)
		return err_set(why, ERR_TIMEOUT, "no answer within %d s", TRAINER_OFFER_S);
	if (!r->exited)
		return err_set(why, ERR_INVALID, "ended by signal %d", r->code);
	if (r->code != 0)
		return err_set(
		    why, ERR_INVALID, "exited with %d: %.160s", r->code, child_last_line(log));
	return ERR_OK;
}

static enum err
read_answer(struct capabilities *out, const struct buf *answer, struct why *why)
{
	struct why inner = {""};
	enum err e = capabilities_decode(out, buf_str(answer), answer->len, &inner);

	if (e)
		return err_set(why, e, "its answer: %.200s", inner.text);
	if (!out->trains && !out->evaluates)
		return err_set(
		    why, ERR_UNSUPPORTED, "its answer: kinds: without \"train\" and \"evaluate\"");
	return ERR_OK;
}

enum err
trainer_offer_ask(struct capabilities *out, const struct trainer_offer *t, struct why *why)
{
	struct child_result result;
	struct buf answer;
	char log[LOG_MAX];
	const struct program program = {.settings = t->settings,
	    .trainer = settings_find_trainer(t->settings, RECIPE_BUILTIN),
	    .home = t->home,
	    .apart = t->apart,
	    .word = "--offer"};
	const struct program_run run = {.child = {.spawner = t->spawner,
					    .answer = &answer,
					    .seconds = TRAINER_OFFER_S,
					    .grace_s = GRACE_S,
					    .stop = t->stop,
					    .context = t->context},
	    .log = log,
	    .room = sizeof(log)};

	if (!program.trainer)
		return err_set(why, ERR_NOTFOUND, "no [trainer " RECIPE_BUILTIN "]");
	buf_init(&answer, CAPABILITIES_MAX);
	enum err e = program_run(&result, &program, &run, why);
	if (!e)
		e = judge_end(&result, log, why);
	if (!e)
		e = read_answer(out, &answer, why);
	buf_deinit(&answer);
	return e;
}

static void
add_feature(struct offer *o, const char *name)
{
	if (o->feature_count < MESSAGES_LIST_MAX)
		strcpy(o->features[o->feature_count++], name);
}

/* Puts a program's capabilities into the offer. Features that the device does with any trainer stay; the others are the program's. */
static void
put_capabilities(struct offer *o, const struct settings *s, const struct capabilities *c)
{
	memcpy(o->layers, c->layers, sizeof(o->layers));
	o->layer_count = c->layer_count;
	o->feature_count = 0;
	for (const char *const *name = recipe_feature_names(); *name; name++)
		if (recipe_feature_actor(*name) == FEATURE_BY_DEVICE)
			add_feature(o, *name);
	for (size_t i = 0; i < c->feature_count; i++)
		if (recipe_feature_actor(c->features[i]) != FEATURE_BY_DEVICE)
			add_feature(o, c->features[i]);
	if (c->memory_bytes)
		o->memory_bytes = s->memory_bytes && s->memory_bytes < c->memory_bytes
		    ? s->memory_bytes
		    : c->memory_bytes;
}

static void
put_name(message_name *names, size_t *count, const char *name)
{
	if (*count < MESSAGES_LIST_MAX)
		strcpy(names[(*count)++], name);
}

/* Puts a trainer into the offer, for the kinds of tasks that it can do and that the owner gives it. */
static void
put_trainer(struct offer *o, const struct settings_trainer *t, bool trains, bool evaluates)
{
	if (trains && settings_trainer_does(t, task_kind_name(TASK_TRAIN)))
		put_name(o->trainers, &o->trainer_count, t->name);
	if (evaluates && settings_trainer_does(t, task_kind_name(TASK_EVALUATE)))
		put_name(o->evaluators, &o->evaluator_count, t->name);
}

static bool
has_figures(const struct capabilities *c)
{
	for (size_t i = 0; i < c->feature_count; i++)
		if (strcmp(c->features[i], RECIPE_FEATURE_FIGURES) == 0)
			return true;
	return false;
}

/* In place of the built-in trainer. */
static void
put_program(struct offer *o, const struct trainer_offer *t, const struct settings_trainer *program)
{
	struct capabilities c = {.layer_count = 0};
	struct why why = {""};
	enum err e =
	    t->home ? program_sandbox_prepare(t->apart, t->home, RECIPE_BUILTIN, &why) : ERR_OK;

	if (!e)
		e = trainer_offer_ask(&c, t, &why);
	if (e)
		memset(&c, 0, sizeof(c));
	put_capabilities(o, t->settings, &c);
	if (!e)
		events_emit(t->events, EVENTS_INFO, "trainer.offer",
		    EVENTS_PAIRS(EVENTS_S("trainer", RECIPE_BUILTIN),
			EVENTS_U("layers", c.layer_count), EVENTS_U("features", c.feature_count),
			EVENTS_U("memory_bytes", c.memory_bytes), EVENTS_U("threads", c.threads)));
	else if (!t->stop || !t->stop(t->context))
		events_emit(t->events, EVENTS_WARN, "trainer.offers-nothing",
		    EVENTS_PAIRS(
			EVENTS_S("trainer", RECIPE_BUILTIN), EVENTS_S("reason", why.text)));
	put_trainer(o, program, c.trains, c.evaluates);
	if (has_figures(&c))
		messages_offer_set_figures(o, RECIPE_BUILTIN, true);
}

/* Reports trainers whose programs cannot be run, before the first task. The others, and the agent, go on. */
static void
try_programs(const struct trainer_offer *t)
{
	const struct settings *s = t->settings;
	struct why why = {""};

	for (size_t i = 0; t->home && i < s->trainer_count; i++)
		if (program_try(s, &s->trainers[i], t->home, NULL, &why))
			events_emit(t->events, EVENTS_ERROR, "trainer.failed",
			    EVENTS_PAIRS(EVENTS_S("name", s->trainers[i].name),
				EVENTS_S("reason", why.text)));
}

void
trainer_offer_put(struct offer *out, const struct trainer_offer *t)
{
	const struct settings *s = t->settings;
	const struct settings_trainer *program = settings_find_trainer(s, RECIPE_BUILTIN);

	try_programs(t);
	out->trainer_count = out->evaluator_count = 0;
	out->trainer_figures = out->evaluator_figures = 0;
	out->says_figures = true;
	if (program) {
		put_program(out, t, program);
	} else {
		put_name(out->trainers, &out->trainer_count, RECIPE_BUILTIN);
		put_name(out->evaluators, &out->evaluator_count, RECIPE_BUILTIN);
		messages_offer_set_figures(out, RECIPE_BUILTIN, true);
	}
	for (size_t i = 0; i < s->trainer_count; i++)
		if (&s->trainers[i] != program) {
			put_trainer(out, &s->trainers[i], true, true);
			/* Until one has shown that it does not. */
			messages_offer_set_figures(out, s->trainers[i].name, true);
		}
}
