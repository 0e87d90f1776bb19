/* What an external trainer leaves: report.json (its length in two bytes first) and after.safetensors (the rest). What is taken
 * is what the job's base model has, and no more. */
#include <math.h>
#include <unistd.h>

#include "after_file.h"
#include "counts.h"
#include "fuzz.h"
#include "report_file.h"
#include "scratch.h"
#include "wild.h"

/* A base of two tensors: [2,3] and [2]. */
static void
make_base(struct work *w)
{
	static struct tensor items[2];
	static uint8_t weights[32];
	const uint64_t shape[2] = {2, 3};

	require(tensor_init(&items[0], "fc1.weight", TENSOR_F32, shape, 2, NULL) == ERR_OK);
	require(tensor_init(&items[1], "fc1.bias", TENSOR_F32, shape, 1, NULL) == ERR_OK);
	items[0].end = items[1].begin = 24;
	items[1].end = items[1].begin + 8;
	items[0].in_delta = items[1].in_delta = true;
	w->table = (struct tensor_table){items, 2, 8, 32};
	w->weights = weights;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct report_file out;
	/* The counts of a job that asks for some of two classes. */
	static const struct recipe recipe = {.data = {.class_count = 2},
	    .figures = {.classes = true, .auc = true, .tops = {1}, .top_count = 1}};
	struct work w = {.path = ""};
	struct why why = {""};

	if (len < 2)
		return 0;
	size_t report = data[0] | (size_t)data[1] << 8;
	data += 2;
	len -= 2;
	if (report > len)
		report = len;
	make_base(&w);
	scratch_put("report.json", data, report);
	scratch_put("after.safetensors", data + report, len - report);
	int directory;
	require(wild_directory(&directory, scratch_get(), NULL) == ERR_OK);
	struct task task = {.kind = TASK_EVALUATE, .recipe = recipe};
	if (report_file_read(&out, directory, &task, &why) == ERR_OK)
		require(out.has_report && out.report.has_evaluate && out.finish.examples >= 1);
	counts_free(out.counts);
	why.text[0] = '\0';
	task.kind = TASK_TRAIN;
	enum err e = report_file_read(&out, directory, &task, &why);
	if (e == ERR_OK)
		require(
		    out.finish.examples >= 1 && out.finish.steps >= 1 && isfinite(out.finish.loss));
	else
		require(why.text[0]);
	require(!e || !out.counts);
	counts_free(out.counts);
	why.text[0] = '\0';
	if (e) {
		strcpy(out.after[0], "after.safetensors");
		out.after_count = 1;
	}
	if (after_file_take(&w, directory, &out, &why))
		require(why.text[0]);
	close(directory);
	return 0;
}
