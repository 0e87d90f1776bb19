/* stages: gcc openssl address */
/* What does not go together in a job is refused when it is submitted, with the reason: one row each, as docs/algorithms.md lists them.
 * Each row has its counterpart without the conflict, which is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator_fixture.h"

#define LAYERS "{\"layers\":[{\"type\":\"linear\",\"out\":2}],\"loss\":\"cross_entropy\"}"
#define MSE "{\"layers\":[{\"type\":\"linear\",\"out\":2}],\"loss\":\"mse\"}"
#define OPAQUE "{\"init\":\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}"
#define DEVICES_RATE "\"evaluate\":{\"by\":\"devices\"}"
#define GUARD "\"guard\":{\"metric\":\"accuracy\",\"drop\":0.1,\"do\":\"stop\"}"
#define RATE "\"optimizer\":{\"rate\":0.1}"
#define SERVER(x) "\"server_optimizer\":{" x "}"
#define SCALE "\"scale\":{\"by\":\"linear\",\"reports\":8}"

struct row {
	/* NULL: as in a plain job */
	const char *model, *local, *round, *aggregate;
	const char *more; /* further keys of the document */
	const char *reason; /* NULL: it is taken */
};

static const struct row rows[] = {
    {.reason = NULL},
    /* --- rules and how many report */
    {.aggregate = "\"rule\":{\"name\":\"mean\",\"hostile\":1}",
	.reason = "aggregate.rule: the mean tolerates no hostile delta"},
    {.aggregate = "\"rule\":{\"name\":\"median\",\"hostile\":3}", .round = "\"goal\":7"},
    {.aggregate = "\"rule\":{\"name\":\"median\",\"hostile\":3}",
	.round = "\"goal\":7,\"quorum\":6",
	.reason = "aggregate.rule: "},
    {.aggregate = "\"rule\":{\"name\":\"krum\",\"hostile\":2}",
	.round = "\"goal\":6",
	.reason = "aggregate.rule: "},
    {.aggregate = "\"rule\":{\"name\":\"bulyan\",\"hostile\":1}",
	.round = "\"goal\":6",
	.reason = "aggregate.rule: "},
    {.aggregate = "\"rule\":{\"name\":\"bulyan\",\"hostile\":1}", .round = "\"goal\":7"},
    {.aggregate = "\"rule\":{\"name\":\"trimmed_mean\",\"hostile\":1,\"bucket\":4}",
	.round = "\"goal\":8",
	.reason = "aggregate.rule: "},
    {.aggregate = "\"rule\":{\"name\":\"krum\",\"picks\":8}",
	.round = "\"goal\":7",
	.reason = "aggregate.rule: "},
    {.aggregate = "\"rule\":{\"name\":\"median\"}",
	.round = "\"goal\":1025",
	.reason = "aggregate.rule: median takes at most 1024 reports a round"},
    {.round = "\"goal\":1025"},
    {.aggregate = "\"rule\":{\"name\":\"median\",\"bucket\":2,\"nearest\":true}",
	.round = "\"goal\":8",
	.reason = "aggregate.rule.nearest: only one of \"bucket\" and \"nearest\""},
    {.aggregate = "\"rule\":{\"name\":\"median\",\"picks\":2}",
	.reason = "aggregate.rule.picks: belongs to krum"},
    {.aggregate = "\"rule\":{\"name\":\"median\",\"radius\":2}",
	.reason = "aggregate.rule.radius: belongs to centered_clipping"},
    {.aggregate = "\"rule\":{\"name\":\"centered_clipping\"}",
	.reason = "aggregate.rule.radius: missing"},
    {.aggregate = "\"rule\":{\"name\":\"krum\",\"smoothing\":1}",
	.reason = "aggregate.rule.smoothing: belongs to geometric_median"},
    {.aggregate = "\"rule\":{\"name\":\"median\",\"iterations\":2}",
	.reason = "aggregate.rule.iterations: belongs to geometric_median, centered_clipping"},
    /* Each is to say how many it tolerates, which may be none. */
    {.aggregate = "\"rule\":{\"name\":\"median\"}",
	.reason = "aggregate.rule.hostile: missing; set it to how many hostile reports a round "
		  "median must tolerate"},
    {.aggregate = "\"rule\":{\"name\":\"geometric_median\"}",
	.reason = "aggregate.rule.hostile: missing; "},
    {.aggregate = "\"rule\":{\"name\":\"centered_clipping\",\"radius\":1}",
	.reason = "aggregate.rule.hostile: missing; "},
    {.aggregate = "\"rule\":{\"name\":\"geometric_median\",\"hostile\":0}"},
    {.aggregate = "\"rule\":{\"name\":\"trimmed_mean\",\"hostile\":0}",
	.reason = "aggregate.rule.hostile: trimmed_mean tolerates as many hostile reports a round"},
    {.aggregate = "\"rule\":{\"name\":\"mean\",\"nearest\":true}",
	.reason = "aggregate.rule.hostile: nearest tolerates"},
    /* --- rules and codecs */
    {.more = "\"upload\":{\"codec\":\"sparse\"}"},
    {.aggregate = "\"rule\":{\"name\":\"median\"}",
	.more = "\"upload\":{\"codec\":\"sparse\"}",
	.reason = "aggregate.rule: median cannot work with codec sparse"},
    {.aggregate = "\"rule\":{\"name\":\"trimmed_mean\"}",
	.more = "\"upload\":{\"codec\":[\"int8\",\"sparse\"]}",
	.reason = "aggregate.rule: trimmed_mean cannot work with codec sparse"},
    {.aggregate = "\"rule\":{\"name\":\"krum\"}",
	.round = "\"goal\":3",
	.more = "\"upload\":{\"codec\":\"sparse\"}",
	.reason = "aggregate.rule: krum cannot work with codec sparse"},
    {.aggregate = "\"rule\":{\"name\":\"bulyan\"}",
	.round = "\"goal\":3",
	.more = "\"upload\":{\"codec\":\"sparse\"}",
	.reason = "aggregate.rule: bulyan cannot work with codec sparse"},
    {.aggregate = "\"rule\":{\"name\":\"geometric_median\",\"nearest\":true}",
	.more = "\"upload\":{\"codec\":\"sparse\"}",
	.reason = "aggregate.rule: \"nearest\" cannot work with codec sparse"},
    {.more = "\"upload\":{\"codec\":\"int8\",\"share\":0.1}",
	.reason = "upload.share: belongs to codec sparse"},
    {.more = "\"upload\":{\"codec\":[\"f32\",\"f32\"]}",
	.reason = "upload.codec[1]: stands there twice"},
    /* --- downloads */
    {.more = "\"download\":{\"codec\":\"int8\"}"},
    {.more = "\"download\":{\"codec\":\"sparse\"}",
	.reason = "download.codec: needs a codec of fixed size"},
    {.more = "\"download\":{\"codec\":\"sign\"}",
	.reason = "download.codec: \"sign\" loses too much without \"feedback\""},
    {.more = "\"download\":{\"codec\":\"sign\",\"feedback\":true}"},
    /* --- server optimizers */
    {.aggregate = SERVER("\"nesterov\":true"),
	.reason = "aggregate.server_optimizer.nesterov: needs \"momentum\""},
    {.aggregate = SERVER("\"name\":\"adam\",\"momentum\":0.9"),
	.reason = "aggregate.server_optimizer.momentum: belongs to sgd; the others have beta1"},
    {.aggregate = SERVER("\"tau\":1"),
	.reason = "aggregate.server_optimizer.tau: belongs to adagrad, yogi, adam"},
    {.aggregate = SERVER("\"schedule\":{\"type\":\"cosine\",\"period\":9,\"stable\":3}"),
	.reason = "aggregate.server_optimizer.schedule.stable: unknown key"},
    {.local = "\"steps\":1," RATE, .aggregate = SERVER(SCALE)},
    {.aggregate = SERVER(SCALE),
	.reason =
	    "aggregate.server_optimizer.scale: needs \"local\": {\"steps\": 1}: after several "
	    "steps a delta is no gradient"},
    {.local = "\"steps\":2," RATE,
	.aggregate = SERVER(SCALE),
	.reason = "aggregate.server_optimizer.scale: needs \"local\": {\"steps\": 1}"},
    {.local = "\"steps\":1,\"optimizer\":{\"name\":\"adam\",\"rate\":0.1}",
	.aggregate = SERVER(SCALE),
	.reason = "aggregate.server_optimizer.scale: adam and adamw make their own length"},
    {.local = "\"steps\":1," RATE,
	.aggregate = "\"rule\":{\"name\":\"krum\"}," SERVER(SCALE),
	.round = "\"goal\":3",
	.reason = "aggregate.server_optimizer.scale: krum's picks stay as many"},
    /* --- normalised averaging */
    {.aggregate = "\"normalise\":true"},
    {.aggregate = "\"normalise\":true,\"rule\":{\"name\":\"median\"}",
	.reason = "aggregate.normalise: goes with the plain mean only"},
    {.aggregate = "\"normalise\":true,\"rule\":{\"bucket\":2}",
	.round = "\"goal\":4",
	.reason = "aggregate.normalise: goes with the plain mean only"},
    {.aggregate = "\"normalise\":true,\"rule\":{\"nearest\":true}",
	.reason = "aggregate.normalise: goes with the plain mean only"},
    {.local = "\"optimizer\":{\"name\":\"adamw\",\"rate\":0.1}",
	.aggregate = "\"normalise\":true",
	.reason = "aggregate.normalise: adam and adamw have no normaliser; use sgd"},
    /* --- local training */
    {.local = "\"epochs\":1,\"steps\":1," RATE, .reason = "local.steps: only one of"},
    {.local = "\"batch\":0,\"accumulate\":2," RATE, .reason = "local.accumulate: needs \"batch\""},
    {.local = "\"random\":\"dice\"," RATE, .reason = "local.random: "},
    {.local = "\"recompute\":\"layers\"," RATE, .reason = "local.recompute: "},
    {.more = "\"parallel\":{\"groups\":2}",
	.reason = "parallel.groups: needs \"micro_batch\" and a local.batch above 0"},
    {.local = "\"batch\":0," RATE,
	.more = "\"parallel\":{\"micro_batch\":4,\"groups\":2}",
	.reason = "parallel.groups: needs \"micro_batch\" and a local.batch above 0"},
    {.local = "\"batch\":10,\"accumulate\":2," RATE,
	.more = "\"parallel\":{\"micro_batch\":4,\"groups\":5}"},
    {.local = "\"batch\":10,\"accumulate\":2," RATE,
	.more = "\"parallel\":{\"micro_batch\":4,\"groups\":2}",
	.reason = "parallel.groups: must divide the pieces of a step"},
    {.local = "\"prox\":20," RATE, .reason = "local.prox: times optimizer.rate must be at most 1"},
    {.local = "\"optimizer\":{\"rate\":0.1,\"nesterov\":true}",
	.reason = "local.optimizer.nesterov: needs \"momentum\""},
    {.local = "\"optimizer\":{\"name\":\"adam\",\"rate\":0.1,\"momentum\":0.9}",
	.reason = "local.optimizer.momentum: belongs to sgd"},
    {.local = "\"optimizer\":{\"rate\":0.1,\"beta1\":0.9}",
	.reason = "local.optimizer.beta1: belongs to adam, adamw"},
    {.local = "\"optimizer\":{\"name\":\"lion\",\"rate\":0.1}",
	.reason = "local.optimizer.name: the built-in trainer has"},
    /* --- models and trainers */
    {.model = OPAQUE, .reason = "trainer: a model without layers needs a trainer of its own"},
    {.model = OPAQUE,
	.more = "\"trainer\":\"own\",\"evaluate\":{\"by\":\"coordinator\"}",
	.reason = "evaluate: the coordinator cannot evaluate a model without layers"},
    {.more = "\"tensors\":{\"*\":\"frozen\"}", .reason = "the model has no tensor to train"},
    /* --- metrics */
    {.more = DEVICES_RATE},
    {.more = "\"stop\":{\"target\":{\"accuracy\":0.9}}",
	.reason = "stop.target: needs \"evaluate\": nothing would measure it"},
    {.model = MSE,
	.more = DEVICES_RATE ",\"stop\":{\"target\":{\"accuracy\":0.9}}",
	.reason = "stop.target.accuracy: the job's loss has none"},
    {.more = "\"evaluate\":{\"by\":\"coordinator\",\"data\":\"nothing\"}", .reason = "nothing"},
    {.more = DEVICES_RATE "," GUARD},
    {.more = GUARD, .reason = "guard: needs \"evaluate\": nothing would measure it"},
    {.model = MSE,
	.more = DEVICES_RATE "," GUARD,
	.reason = "guard.metric: the job's loss has no accuracy"},
    {.more = DEVICES_RATE
	",\"guard\":{\"metric\":\"loss\",\"factor\":2,\"drop\":0.1,\"do\":\"stop\"}",
	.reason = "guard.drop: belongs to accuracy; loss has \"factor\""},
    {.more = DEVICES_RATE
	",\"guard\":{\"metric\":\"accuracy\",\"factor\":2,\"drop\":0.1,\"do\":\"stop\"}",
	.reason = "guard.factor: belongs to loss; accuracy has \"drop\""},
    {.more = DEVICES_RATE ",\"guard\":{\"metric\":\"loss\",\"do\":\"stop\"}",
	.reason = "guard.factor: missing"},
    {.more = DEVICES_RATE
	",\"guard\":{\"metric\":\"loss\",\"factor\":2,\"do\":\"pause\",\"times\":1}",
	.reason = "guard.times: belongs to \"do\": \"rollback\""},
    {.more = DEVICES_RATE
	",\"guard\":{\"metric\":\"loss\",\"factor\":2,\"do\":\"stop\",\"window\":33}",
	.reason = "guard.window: must be a whole number from 1 to 32"},
    {.more = DEVICES_RATE ",\"guard\":{\"metric\":\"loss\",\"factor\":2,\"do\":\"rollback\"},"
			  "\"upload\":{\"codec\":[\"f32\",\"sparse\"]}",
	.reason =
	    "guard.do: \"rollback\" cannot work with upload.feedback, which sparse has unless"},
    {.more = DEVICES_RATE ",\"guard\":{\"metric\":\"loss\",\"factor\":2,\"do\":\"rollback\"},"
			  "\"upload\":{\"codec\":\"sign\",\"feedback\":true}",
	.reason = "guard.do: \"rollback\" cannot work with upload.feedback"},
    {.more = DEVICES_RATE ",\"guard\":{\"metric\":\"loss\",\"factor\":2,\"do\":\"rollback\"},"
			  "\"upload\":{\"codec\":\"sparse\",\"feedback\":false}"},
};

static void
document(const struct row *r, size_t number, char *out, size_t room)
{
	int n = snprintf(out, room,
	    "{\"name\":\"row%zu\",\"model\":%s,\"data\":{\"name\":\"d\",\"shape\":[4],\"classes\":"
	    "2,"
	    "\"validation\":0.1},\"local\":{%s},\"round\":{%s},\"aggregate\":{%s}%s%s}",
	    number, r->model ? r->model : LAYERS, r->local ? r->local : RATE,
	    r->round ? r->round : "\"goal\":2", r->aggregate ? r->aggregate : "",
	    r->more ? "," : "", r->more ? r->more : "");

	assert_true(n > 0 && (size_t)n < room);
}

static void
each_row(void **state)
{
	struct coordinator *c = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *reason = rows[i].reason;
		char text[2048];
		uint8_t id[16];
		bool created = false;
		document(&rows[i], i, text, sizeof(text));
		c->why.text[0] = '\0';
		enum err e = engine_submit(c->s.engine,
		    &(struct engine_document){.text = text, .len = strlen(text)}, id, &created,
		    &c->why);
		if (reason ? e == ERR_OK || created || !strstr(c->why.text, reason)
			   : e != ERR_OK || !created)
			fail_msg("%s: %s: \"%s\", not \"%s\"", text, err_name(e), c->why.text,
			    reason ? reason : "");
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(each_row, coordinator_setup, coordinator_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
