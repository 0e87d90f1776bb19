#include "trial_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "file.h"
#include "identity.h"
#include "job.h"
#include "messages.h"
#include "modelfile.h"
#include "network.h"
#include "take.h"
#include "tensors.h"
#include "train.h"

/* Writes header and weights; tables are the net's or the base model's. */
static enum err
write_model(const char *path, const struct tensor_table *table, const void *weights, uint64_t round,
    struct why *why)
{
	struct buf file;
	const struct modelfile_meta meta = {.round = round};
	void *at;

	buf_init(&file, SIZE_MAX / 2);
	enum err e = modelfile_header(&file, table, &meta);
	if (!e)
		e = buf_extend(&file, (size_t)table->bytes, &at);
	if (!e) {
		memcpy(at, weights, (size_t)table->bytes);
		e = file_write(path, file.data, file.len, 0644, why);
	} else {
		err_set(why, e, "no memory for the model");
	}
	buf_deinit(&file);
	return e;
}

static enum err
draw_model(struct cmd_trial *t, struct why *why)
{
	struct net *net;
	const struct recipe *r = &t->work.task.recipe;

	if (r->net.layer_count == 0)
		return err_set(
		    why, ERR_INVALID, "the job has no layers: give its weights with --init");
	enum err e = cmd_network_new(&net, r, 1, why);
	if (e)
		return e;
	net_init(net, t->work.task.seed);
	e = write_model(t->path, net_tensors(net), net_params(net), 0, why);
	net_free(net);
	return e;
}

/* As the coordinator refuses it. */
static enum err
check_numbers(
    const struct recipe *r, const struct tensor_table *have, const void *data, struct why *why)
{
	struct tensor_table table = {0};

	enum err e = tensor_table_copy(&table, have);
	if (!e)
		e = tensor_table_assign(&table, r->rules, r->rule_count, why);
	for (size_t i = 0; !e && i < table.count; i++)
		e = tensor_check_finite(&table.items[i], table.items[i].role, data, why);
	tensor_table_deinit(&table);
	return e;
}

/* The layers' tensors in the layers' order. */
static enum err
arrange_model(struct cmd_trial *t, const char *init, struct why *why)
{
	struct net *net;
	enum err e = cmd_network_load(&net, &t->work.task.recipe, init, t->work.task.seed, 1, why);

	if (e)
		return e;
	e = check_numbers(&t->work.task.recipe, net_tensors(net), net_params(net), why);
	if (!e)
		e = write_model(t->path, net_tensors(net), net_params(net), 0, why);
	net_free(net);
	return e;
}

static enum err
take_model(struct cmd_trial *t, const char *init, struct why *why)
{
	struct tensors from;

	if (t->work.task.recipe.net.layer_count > 0)
		return arrange_model(t, init, why);
	enum err e = tensors_open(&from, init, why);
	if (e)
		return e;
	e = check_numbers(&t->work.task.recipe, &from.table, from.data, why);
	if (!e)
		e = file_write(t->path, from.file.data, from.file.len, 0644, why);
	tensors_close(&from);
	return e;
}

/* The task message that an external trainer reads. */
static enum err
make_message(struct cmd_trial *t, struct why *why)
{
	struct buf text;
	struct task *task = &t->work.task;

	buf_init(&text, 2u << 20);
	enum err e = messages_task_encode(&text, task);
	free(t->work.text);
	t->work.text = e ? NULL : strdup(buf_str(&text));
	buf_deinit(&text);
	return t->work.text ? ERR_OK
			    : err_set(why, e ? e : ERR_NOMEM, "the task cannot be written");
}

enum err
cmd_trial_init(struct cmd_trial *t, struct job_spec *job, const char *scratch, const char *init,
    struct why *why)
{
	struct task *task = &t->work.task;

	memset(t, 0, sizeof(*t));
	t->job = job;
	task->recipe = job->recipe;
	memset(&job->recipe, 0, sizeof(job->recipe));
	task->seed = job->seed;
	task->kind = TASK_TRAIN;
	memset(task->task, '0', sizeof(task->task) - 1);
	memset(task->job, '0', sizeof(task->job) - 1);
	memset(task->model, '0', sizeof(task->model) - 1);
	task->round = 1;
	task->model_bytes = 1;
	task->deadline_s = 1e6;
	enum err e = identity_path(t->path, scratch, "model.safetensors", why);
	if (e)
		return e;
	return init ? take_model(t, init, why) : draw_model(t, why);
}

static void
unload(struct cmd_trial *t)
{
	struct task task = t->work.task;

	/* work_deinit would take the task along, which stays. */
	memset(&t->work.task, 0, sizeof(t->work.task));
	work_deinit(&t->work);
	t->work.task = task;
	t->loaded = false;
}

void
cmd_trial_deinit(struct cmd_trial *t)
{
	if (!t->job)
		return;
	unload(t);
	t->job->recipe = t->work.task.recipe;
	memset(t, 0, sizeof(*t));
}

static enum err
check_patterns(const struct work *w, struct why *why)
{
	const struct recipe *r = &w->task.recipe;
	const struct tensor_rule *unused = tensor_table_unused(&w->table, r->rules, r->rule_count);

	return unused ? err_set(why, ERR_INVALID, "tensors: \"%.80s\" fits no tensor of the model",
			    unused->pattern)
		      : ERR_OK;
}

enum err
cmd_trial_base(struct cmd_trial *t, struct why *why)
{
	enum err e = ERR_OK;

	if (t->loaded) {
		e = cmd_trial_save(t, t->path, why);
		unload(t);
	}
	if (!e)
		e = make_message(t, why);
	if (!e)
		e = work_load(&t->work, t->path, 0, why);
	t->loaded = !e;
	return e ? e : check_patterns(&t->work, why);
}

enum err
cmd_trial_evaluate(
    struct cmd_trial *t, const struct dataset *set, struct train_score *out, struct why *why)
{
	struct net *net;
	const struct recipe *r = &t->work.task.recipe;

	if (r->net.layer_count == 0)
		return err_set(why, ERR_INVALID, "--test needs a job with layers");
	enum err e = cmd_network_new(&net, r, CMD_NETWORK_BATCH, why);
	if (e)
		return e;
	e = take_file(net, &t->work.table, t->work.weights, why);
	if (!e)
		e = train_evaluate(stepper_net(net), set, &r->data, out, why);
	net_free(net);
	return e;
}

enum err
cmd_trial_save(struct cmd_trial *t, const char *path, struct why *why)
{
	if (!t->loaded)
		return err_set(why, ERR_STATE, "nothing was trained");
	return write_model(path, &t->work.table, t->work.weights, t->work.task.round, why);
}
