#include "api.h"
#include "buf.h"
#include "metrics.h"
#include "ready.h"
#include "report.h"

void
api_metrics(struct exchange *x)
{
	struct health_report ready;
	struct buf out;

	buf_init(&out, METRICS_BYTES_MAX);
	ready_report(x->services, &ready);
	enum err e = metrics_print(&out, x->services, &ready);
	if (e)
		exchange_failed(x, e, NULL);
	else
		exchange_bytes(x, 200, METRICS_TYPE, out.data, out.len);
	buf_deinit(&out);
}
