#include "network.h"

#include <stdlib.h>

#include "file.h"
#include "job.h"
#include "json.h"
#include "kernel_choice.h"
#include "preset.h"
#include "take.h"
#include "tensors.h"

enum err
cmd_network_read_job(struct job_spec *out, const char *path, struct why *why)
{
	char *text = NULL;
	size_t len = 0;
	struct why inner;
	enum err e = preset_read(path, NULL, &text, &len, why);

	if (e)
		return e;
	e = job_parse(out, text, len, &inner);
	free(text);
	if (e)
		return err_set(why, ERR_INVALID, "%.80s: %.160s", path, inner.text);
	e = job_check(out, &inner);
	if (e) {
		job_deinit(out);
		return err_set(why, ERR_INVALID, "%.80s: %.160s", path, inner.text);
	}
	return ERR_OK;
}

enum err
cmd_network_new(struct net **out, const struct recipe *r, uint32_t batch, struct why *why)
{
	size_t classes = net_spec_labels(&r->net) ? r->data.class_count : 0;

	if (r->net.layer_count == 0)
		return err_set(why, ERR_INVALID,
		    "the job has no layers: its network is known to its trainer alone");
	if (r->net.arithmetic == ARITHMETIC_FAST)
		kernel_choice_ready(NULL);
	return net_new(out, &r->net, classes, batch, false, 0, why);
}

/* The layers' tensors in the layers' order, as a coordinator makes a job's first model of an uploaded one. */
static enum err
fill(struct net *net, const char *file, struct why *why)
{
	struct tensors from;
	struct why detail = {""};
	enum err e = tensors_open(&from, file, why);

	if (e)
		return e;
	e = take_file(net, &from.table, from.data, &detail);
	if (e)
		err_set(why, e, "%.100s: %.140s", file, detail.text);
	tensors_close(&from);
	return e;
}

enum err
cmd_network_load(struct net **out, const struct recipe *r, const char *file, uint64_t seed,
    uint32_t batch, struct why *why)
{
	struct net *net = NULL;
	enum err e = cmd_network_new(&net, r, batch, why);

	if (e)
		return e;
	net_init(net, seed);
	e = fill(net, file, why);
	if (e)
		net_free(net);
	else
		*out = net;
	return e;
}
