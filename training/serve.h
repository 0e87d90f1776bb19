#ifndef SERVE_H
#define SERVE_H
#include "builtin.h"

/*
 * A program in the place of the built-in trainer: one task's directory, or an agent that gives one after the other (docs/devices.md). What is
 * done with a task is training_run's; `rivulet trainer` and `rivulet-site` differ in what they put into it.
 */
/* What a task is broken off by. */
struct serve_wish {
	bool (*wanted)(void *context); /* finish early with what there is */
	void *context;
};

struct serve {
	/* Trains what `in` says, or something in its place: as training_run. */
	enum err (*train)(
	    void *context, const struct training_in *in, struct training_out *out, struct why *why);
	/* Not NULL: does the whole task in place of `train`, and leaves a result or a reason. */
	enum err (*task)(
	    void *context, const char *directory, const struct serve_wish *wish, struct why *why);
	void *context;
	/* Shows a reason to a person. */
	void (*say)(const char *reason);
};

/* SIGTERM and SIGINT: save what there is, and leave. Called once, before the tasks. */
void serve_catch_signals(void);
bool serve_is_ending(void);

/* What such a program can do, as an agent asks with --offer: kinds, layers, and features but those of `lacking`, which NULL ends. The
 * caller frees it. */
struct json;
struct json *serve_offer(const char *const *lacking);

/* Leaves a result or a reason in the directory; an error only if neither can be written. Blocks. */
ERR_MUST_USE enum err serve_task(const struct serve *s, const char *directory, struct why *why);
/* Takes tasks from an agent that started this program to stay (RIVULET_TRAINER_IN, RIVULET_TRAINER_OUT), until the agent closes its end.
 * ERR_INVALID: there is no agent. */
ERR_MUST_USE enum err serve_agent(const struct serve *s, struct why *why);

#endif
