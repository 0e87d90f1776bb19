#include "export.h"

#include "buf.h"
#include "err.h"
#include "file.h"
#include "network.h"
#include "onnx.h"

enum err
cmd_export_onnx(
    const struct recipe *r, const char *name, const char *model, const char *to, struct why *why)
{
	struct net *net;
	struct buf out;
	enum err e = cmd_network_load(&net, r, model, 1, 1, why);

	if (e)
		return e;
	struct onnx_model m = {.name = name,
	    .net = &r->net,
	    .data = &r->data,
	    .tensors = net_tensors(net),
	    .weights = net_params(net)};
	net_output_shape(net, m.output);
	buf_init(&out, ONNX_BYTES_MAX);
	e = onnx_encode(&out, &m, why);
	if (!e)
		e = file_write(to, out.data, out.len, 0644, why);
	buf_deinit(&out);
	net_free(net);
	return e;
}
