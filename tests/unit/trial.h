#ifndef TRIAL_H
#define TRIAL_H
/* A task as an agent has it, for tests of trainers: a small model in a file, a set of examples, settings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "dataset.h"
#include "file.h"
#include "job.h"
#include "net.h"
#include "settings.h"
#include "trainer.h"

struct trial {
	char home[64], path[128];
	struct job_spec job;
	struct settings *settings;
	struct dataset train, validation;
	struct work work;
	struct trainer_in in;
	struct trainer_out out;
};

static inline void
trial_check(enum err e, const struct why *why)
{
	if (!e)
		return;
	fprintf(stderr, "trial: %s: %s\n", err_name(e), why->text);
	exit(1);
}

/* n points; the class is the sign of the first of two coordinates. */
static inline void
trial_points(struct dataset *d, size_t n)
{
	*d = (struct dataset){
	    .count = n, .shape = {2, 1, 1}, .dims = 1, .features = 2, .classes = 2};
	d->floats = calloc(n * 2, sizeof(float));
	d->labels = calloc(n, sizeof(int32_t));
	for (size_t i = 0; i < n; i++) {
		d->labels[i] = i % 2;
		d->floats[2 * i] = (i % 2 ? 1.0f : -1.0f) * (1.0f + (float)(i % 7));
		d->floats[2 * i + 1] = (float)(i % 5);
	}
}

static inline void
trial_model(struct trial *t, struct why *why)
{
	struct net *net;
	struct buf file;

	trial_check(net_new(&net, &t->job.recipe.net, 2, 1, false, 0, why), why);
	net_init(net, 1);
	buf_init(&file, 1 << 20);
	const struct modelfile_meta meta = {.round = 0};
	trial_check(modelfile_header(&file, net_tensors(net), &meta), why);
	trial_check(buf_append(&file, net_params(net), net_tensors(net)->bytes), why);
	trial_check(file_write(t->path, file.data, file.len, 0644, why), why);
	buf_deinit(&file);
	net_free(net);
}

static inline void
trial_task(struct trial *t, struct why *why)
{
	struct task *task = &t->work.task;
	struct buf text;

	task->recipe = t->job.recipe;
	memset(&t->job.recipe, 0, sizeof(t->job.recipe));
	task->kind = TASK_TRAIN;
	memset(task->task, '1', 32);
	memset(task->job, '2', 32);
	memset(task->model, '3', 64);
	task->round = 1;
	task->seed = 1;
	task->model_bytes = 1;
	task->deadline_s = 100;
	buf_init(&text, 1 << 20);
	trial_check(messages_task_encode(&text, task), why);
	t->work.text = strdup(buf_str(&text));
	buf_deinit(&text);
	trial_check(work_load(&t->work, t->path, 0, why), why);
}

/* job and config: JSON and INI text. Ends the program if they are not good. */
static inline void
trial_init(struct trial *t, const char *job, const char *config)
{
	static const uint8_t device[32] = {1};
	struct why why = {""};

	memset(t, 0, sizeof(*t));
	strcpy(t->home, "/tmp/test_trial.XXXXXX");
	if (!mkdtemp(t->home))
		exit(1);
	snprintf(t->path, sizeof(t->path), "%s/model.safetensors", t->home);
	trial_check(job_parse(&t->job, job, strlen(job), &why), &why);
	trial_check(settings_parse(&t->settings, "trial.conf", config, strlen(config), &why), &why);
	trial_points(&t->train, 40);
	trial_points(&t->validation, 10);
	trial_model(t, &why);
	trial_task(t, &why);
	t->in = (struct trainer_in){.work = &t->work,
	    .train = &t->train,
	    .validation = &t->validation,
	    .settings = t->settings,
	    .data = t->settings->data_count ? &t->settings->data[0] : NULL,
	    .home = t->home,
	    .device = device};
}

static inline void
trial_deinit(struct trial *t)
{
	char below[128];

	work_deinit(&t->work);
	job_deinit(&t->job);
	settings_free(t->settings);
	dataset_deinit(&t->train);
	dataset_deinit(&t->validation);
	unlink(t->path);
	snprintf(below, sizeof(below), "%s/work", t->home);
	rmdir(below);
	snprintf(below, sizeof(below), "%s/trainers", t->home);
	(void)!file_remove_dir(below, NULL);
	snprintf(below, sizeof(below), "%s/examples", t->home);
	(void)!file_remove_dir(below, NULL);
	if (rmdir(t->home) != 0) {
		fprintf(stderr, "trial: something was left in %s\n", t->home);
		exit(1);
	}
}

#endif
