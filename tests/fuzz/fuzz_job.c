/* A job that is accepted makes a task that a device can read, and a network within its limits. */

#include "buf.h"
#include "err.h"
#include "fuzz_network.h"
#include "job.h"
#include "messages.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct job_spec job;
	struct task out, in = {.kind = TASK_TRAIN, .round = 1, .model_bytes = 1};
	struct buf text;
	struct why why;

	if (job_parse(&job, (const char *)data, len, &why)) {
		job_deinit(&job);
		return 0;
	}
	memset(in.task, '0', 32);
	memset(in.job, '1', 32);
	memset(in.model, '2', 64);
	in.seed = job.seed;
	in.deadline_s = job.round.deadline_s;
	in.recipe = job.recipe;
	buf_init(&text, JOB_DOCUMENT_MAX);
	if (messages_task_encode(&text, &in) ||
	    messages_task_decode(&out, text.data, text.len, &why))
		abort();
	if (out.seed != job.seed || out.recipe.net.layer_count != job.recipe.net.layer_count)
		abort();
	network_try(&job.recipe);
	messages_task_deinit(&out);
	job_deinit(&job);
	buf_deinit(&text);
	return 0;
}
