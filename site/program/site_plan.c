#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset.h"
#include "divide.h"
#include "job.h"
#include "local_world.h"
#include "pieces.h"
#include "preset.h"
#include "site.h"
#include "training.h"

/* How many whole steps' examples a device is thought to have. */
#define STEPS 64

static enum err
plan_in(const struct site *s, struct world *world, const struct training_in *in, struct why *why)
{
	struct pieces pieces = {.parts = 1, .groups = 1};
	struct leader_task task = site_task(s, in, &pieces);
	struct divided divided = {.best = {.step_s = 0}};
	enum err e = divide_task(s, world, &task, &pieces, &divided, why);

	if (!e)
		divide_print(stdout, &divided, &task);
	divide_deinit(&divided);
	return e;
}

/* A device with so many examples that every step is whole. */
static enum err
plan_job(const struct site *s, const struct job_spec *job, struct why *why)
{
	static const uint8_t device[32];
	const struct local_spec *local = &job->recipe.local;
	uint64_t some = local->batch > 0 ? training_step(local, UINT32_MAX) * STEPS : 1024;
	const struct dataset none = {.count = 0};
	const struct dataset train = {.count = some < UINT32_MAX ? (size_t)some : UINT32_MAX,
	    .classes = job->recipe.data.class_count};
	const struct training_in in = {.recipe = &job->recipe,
	    .kind = TASK_TRAIN,
	    .seed = job->seed,
	    .round = 1,
	    .device = device,
	    .train = &train,
	    .validation = &none};
	struct local_world *local_world = NULL;
	enum err e = site_suits(s, &in, why);

	if (!e && !s->world)
		e = local_world_new(&local_world, s->ranks, why);
	if (!e)
		e = plan_in(s, s->world ? s->world : local_world_leader(local_world), &in, why);
	local_world_free(local_world);
	return e;
}

enum err
site_show_plan(const struct site *site, const char *path, struct why *why)
{
	struct job_spec job;
	char *text = NULL;
	size_t len = 0;
	enum err e = preset_read(path, NULL, &text, &len, why);

	if (!e)
		e = job_parse(&job, text, len, why);
	free(text);
	if (e)
		return e;
	e = plan_job(site, &job, why);
	job_deinit(&job);
	return e;
}
