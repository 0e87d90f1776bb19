#include "owner_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "program.h"

#define NAME "owner's check" /* no [trainer NAME] can be called so */
#define ANSWER_MAX 4096
#define LOG_MAX 512

/* What it says may go to a log and to the coordinator. */
static void
take_line(char said[VERDICT_TEXT_MAX], const char *text)
{
	size_t n = 0;

	for (; text[n] && text[n] != '\n' && n + 1 < VERDICT_TEXT_MAX; n++)
		said[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
	said[n] = '\0';
}

static bool
run(const struct owner_check *c, const struct settings_trainer *trainer,
    char said[VERDICT_TEXT_MAX])
{
	const struct program program = {
	    .settings = c->settings, .trainer = trainer, .home = c->home, .apart = c->apart};
	struct child_result result = {.exited = false};
	struct why why = {""};
	struct buf answer;
	char log[LOG_MAX];

	buf_init(&answer, ANSWER_MAX);
	const struct program_run options = {.child = {.spawner = c->spawner,
						.answer = &answer,
						.seconds = OWNER_CHECK_S,
						.stop = c->stop,
						.context = c->context},
	    .log = log,
	    .room = sizeof(log)};
	enum err e = program_run(&result, &program, &options, &why);
	if (e)
		take_line(said, why.text);
	else if (result.asked && !result.overflow)
		take_line(said, "it does not come to an end");
	else
		take_line(said, answer.len ? buf_str(&answer) : "");
	buf_deinit(&answer);
	return !e && result.exited && result.code == 0 && !result.asked;
}

bool
owner_check_ask(void *check, char said[VERDICT_TEXT_MAX])
{
	const struct owner_check *c = check;
	struct settings_trainer *trainer = calloc(1, sizeof(*trainer));

	if (!trainer) {
		take_line(said, "no memory");
		return false;
	}
	strcpy(trainer->name, NAME);
	memcpy(trainer->exec, c->settings->eligibility.check, sizeof(trainer->exec));
	bool yes = run(c, trainer, said);
	free(trainer);
	return yes;
}
