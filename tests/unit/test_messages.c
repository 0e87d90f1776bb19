/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "codec.h"
#include "job.h"
#include "json.h"
#include "messages_fixture.h"

#define OTHER64 "fedcba9876543210fedcba9876543210" HEX32
#define RECIPE \
	"{\"model\":{\"layers\":[{\"type\":\"linear\",\"out\":2}],\"loss\":\"cross_entropy\"}," \
	"\"params\":{\"a\":[0.1,null]}," \
	"\"data\":{\"name\":\"d\",\"shape\":[4],\"classes\":2},\"local\":{\"optimizer\":{" \
	"\"rate\":0.1}}}"

/* Decoders under one signature, so that tables of bad texts can name them. */
static enum err
task(const char *text, struct why *why)
{
	struct task t;
	enum err e = messages_task_decode(&t, text, strlen(text), why);

	messages_task_deinit(&t);
	return e;
}

#define DECODER(name, type, decode) \
	static enum err name(const char *text, struct why *why) \
	{ \
		struct type out; \
\
		return decode(&out, text, strlen(text), why); \
	}
DECODER(report, report, messages_report_decode)
DECODER(join, join_request, messages_join_decode)
DECODER(joined, join_answer, messages_joined_decode)
DECODER(aborted, abort_request, messages_abort_decode)
DECODER(problem, problem, messages_problem_decode)
DECODER(token, token_request, messages_token_decode)

struct bad_row {
	enum err (*decode)(const char *text, struct why *why);
	const char *text;
	const char *reason; /* NULL: good */
};

#define TASK_IDS "\"kind\":\"train\",\"task\":\"" HEX32 "\",\"job\":\"" HEX32 "\",\"round\":1"
#define MODEL "\"model\":{\"id\":\"" HEX64 "\",\"bytes\":9}"
#define CERTS "\"certificate\":\"a\",\"ca\":\"b\""

static const struct bad_row rows[] = {
    {offer, "{\"protocol\":1}", NULL},
    {offer, "{\"protocol\":1,\"agent\":\"2.0\",\"colour\":{\"x\":[1]},\"data\":null}", NULL},
    {offer, "{}", "protocol: missing"},
    {offer, "[]", "must be a JSON object"},
    {offer, "{\"protocol\":0}", NULL},
    {offer, "{\"protocol\":\"1\"}", "protocol: must be a whole number from 0 to 9007199254740991"},
    {offer, "{\"protocol\":1,\"agent\":\"1\\n\"}", "agent: must be printable text"},
    {offer, "{\"protocol\":1,\"agent\":\"" HEX32 "\"}", "agent: longer than 31 bytes"},
    {offer, "{\"protocol\":1,\"wait\":51}", "wait: must be a whole number from 0 to 50"},
    {offer, "{\"protocol\":1,\"time_ms\":-1}",
	"time_ms: must be a whole number from 0 to 9007199254740991"},
    {offer, "{\"protocol\":1,\"disk_free_bytes\":\"1\"}",
	"disk_free_bytes: must be a whole number from 0 to 9007199254740991"},
    {offer, "{\"protocol\":1,\"unready\":\"two words\"}",
	"unready: must be letters, digits, '_', '.' and '-'"},
    {offer, "{\"protocol\":1,\"unready\":\"a-name-of-more-than-thirty-one-bytes\"}",
	"unready: longer than 31 bytes"},
    {offer, "{\"protocol\":1,\"unready\":\"\"}",
	"unready: must be letters, digits, '_', '.' and '-'"},
    {offer, "{\"protocol\":1,\"machine\":\"" HEX32 "\"}",
	"machine: must be 64 lower-case hex digits"},
    {offer, "{\"protocol\":1,\"memory_bytes\":-1}",
	"memory_bytes: must be a whole number from 0 to 9007199254740991"},
    {offer, "{\"protocol\":1,\"trainers\":[\"a\",\"b c\"]}",
	"trainers[1]: must be letters, digits, '_', '.' and '-'"},
    {offer, "{\"protocol\":1,\"trainers\":[null]}", "trainers[0]: missing"},
    {offer, "{\"protocol\":1,\"codecs\":\"f32\"}", "codecs: must be an array"},
    {offer, "{\"protocol\":1,\"layers\":[7]}", "layers[0]: must be a string"},
    {offer, "{\"protocol\":1,\"features\":[\"prox\",true]}", "features[1]: must be a string"},
    {offer, "{\"protocol\":1,\"held_models\":[\"abc\"]}",
	"held_models[0]: must be 64 lower-case hex digits"},
    {offer, "{\"protocol\":1,\"data\":[{\"name\":\"d\"}]}", "data[0].examples: missing"},
    {offer, "{\"protocol\":1,\"data\":[{\"examples\":1}]}", "data[0].name: missing"},
    {offer, "{\"protocol\":1,\"data\":[{\"name\":\"d\",\"examples\":1.5}]}",
	"data[0].examples: must be a whole number from 0 to 9007199254740991"},
    {offer, "{\"protocol\":1,\"data\":[{\"name\":\"d\",\"examples\":1,\"classes\":[\"a\",2]}]}",
	"data[0].classes[1]: must be a string"},
    {offer, "{\"protocol\":1,\"data\":[{\"name\":\"d\",\"examples\":1,\"classes\":[\"\\u0085\"]}]}",
	"data[0].classes[0]: must be printable text"},
    {offer, "{\"protocol\":1,\"data\":[3]}", "data[0]: must be an object"},
    {task,
	"{" TASK_IDS "," MODEL ",\"variate\":3,\"seed\":1,\"deadline_s\":1,\"recipe\":" RECIPE "}",
	"variate: must be an object"},
    {task,
	"{" TASK_IDS "," MODEL ",\"variate\":{\"id\":\"" HEX32
	"\"},\"seed\":1,\"deadline_s\":1,\"recipe\":" RECIPE "}",
	"variate.id: must be 64 lower-case hex digits"},
    {task,
	"{" TASK_IDS "," MODEL ",\"variate\":{\"id\":\"" HEX64
	"\"},\"seed\":1,\"deadline_s\":1,\"recipe\":" RECIPE "}",
	"variate.bytes: missing"},
    {task,
	"{" TASK_IDS "," MODEL
	",\"variate\":{\"counted\":1000000},\"seed\":1,\"deadline_s\":1,\"recipe\":" RECIPE "}",
	"variate.counted: must be a round before"},
    {task, "{\"wait\":5}", NULL},
    {task, "{\"wait\":5,\"reason\":\"no-job\",\"hint\":1}", NULL},
    {task, "{\"wait\":-5}", "wait: must be a whole number from 0 to 1000000"},
    {task, "{\"wait\":\"soon\"}", "wait: must be a whole number from 0 to 1000000"},
    {task, "{\"wait\":5," TASK_IDS "}", "wait: stands beside a task"},
    {task, "{}", "kind: missing"},
    {task, "{\"kind\":\"train\"}", "task: missing"},
    {task, "{\"kind\":\"train\",\"task\":\"" HEX64 "\"}", "task: must be 32 lower-case hex digits"},
    {task, "{\"kind\":\"train\",\"task\":\"0123456789ABCDEF0123456789ABCDEF\"}",
	"task: must be 32 lower-case hex digits"},
    {task, "{\"kind\":\"train\",\"task\":\"" HEX32 "\",\"job\":7}",
	"job: must be 32 lower-case hex digits"},
    {task, "{\"kind\":\"train\",\"task\":\"" HEX32 "\",\"job\":\"" HEX32 "\",\"round\":0}",
	"round: must be a whole number from 1 to 9007199254740991"},
    {task, "{" TASK_IDS ",\"seed\":1,\"deadline_s\":1,\"recipe\":" RECIPE "}", "model.id: missing"},
    {task,
	"{" TASK_IDS ",\"seed\":1,\"deadline_s\":1,\"model\":{\"id\":\"" HEX64 "\",\"bytes\":0}}",
	"model.bytes: must be a whole number from 1 to 9007199254740991"},
    {task, "{" TASK_IDS "," MODEL ",\"deadline_s\":1,\"recipe\":" RECIPE "}", "seed: missing"},
    {task,
	"{" TASK_IDS "," MODEL ",\"seed\":9007199254740992,\"deadline_s\":1,\"recipe\":" RECIPE "}",
	"seed: must be a whole number from 0 to 9007199254740991"},
    {task, "{" TASK_IDS "," MODEL ",\"seed\":1,\"recipe\":" RECIPE "}", "deadline_s: missing"},
    {task, "{" TASK_IDS "," MODEL ",\"seed\":1,\"deadline_s\":-1,\"recipe\":" RECIPE "}",
	"deadline_s: must be a number from 0 to 1e+09"},
    {task, "{" TASK_IDS "," MODEL ",\"seed\":1,\"deadline_s\":0.5,\"new\":1,\"recipe\":" RECIPE "}",
	NULL},
    {report, "{}", NULL},
    {report, "{\"evaluate\":{},\"metrics\":{},\"more\":1}", NULL},
    {report, "{\"evaluate\":{\"loss\":null},\"metrics\":{\"a\":null}}", NULL},
    {report, "{\"evaluate\":[]}", "evaluate: must be an object"},
    {report, "{\"evaluate\":{\"examples\":-1}}",
	"evaluate.examples: must be a whole number from 0 to 9007199254740991"},
    {report, "{\"evaluate\":{\"accuracy\":1.5}}",
	"evaluate.accuracy: must be a number from 0 to 1"},
    {report, "{\"evaluate\":{\"loss\":\"x\"}}",
	"evaluate.loss: must be a number from -1.79769e+308 to 1.79769e+308"},
    {report, "{\"metrics\":[1]}", "metrics: must be an object"},
    {report, "{\"metrics\":{\"\":1}}",
	"metrics.: a key of at most 63 bytes must be printable text"},
    {report, "{\"metrics\":{\"a\\u001b[m\":1}}",
	"metrics.a?[m: a key of at most 63 bytes must be printable text"},
    {report, "{\"metrics\":{\"a\":true}}",
	"metrics.a: must be a number from -1.79769e+308 to 1.79769e+308"},
    {join, "{\"csr\":\"AAEC\"}", NULL},
    {join, "{\"csr\":\"AAEC\",\"name\":\"gate 7 \xc3\xa9\",\"os\":\"x\"}", NULL},
    {join, "{}", "csr: missing"},
    {join, "{\"csr\":\"\"}", "csr: must be base64"},
    {join, "{\"csr\":\"AAE\"}", "csr: must be base64"},
    {join, "{\"csr\":\"A-E=\"}", "csr: must be base64"},
    {join, "{\"csr\":7}", "csr: must be a string"},
    {join, "{\"csr\":\"AAEC\",\"name\":\"a\\tb\"}", "name: must be printable text"},
    {join, "{\"csr\":\"AAEC\",\"name\":\"" HEX64 "\"}", "name: longer than 63 bytes"},
    {joined, "{\"device\":\"" HEX64 "\",\"role\":\"device\"," CERTS "}", NULL},
    {joined, "{\"device\":\"" HEX32 "\",\"role\":\"device\"," CERTS "}",
	"device: must be 64 lower-case hex digits"},
    {joined, "{\"device\":\"" HEX64 "\"," CERTS "}", "role: missing"},
    {joined, "{\"device\":\"" HEX64 "\",\"role\":\"device\",\"ca\":\"b\"}", "certificate: missing"},
    {joined, "{\"device\":\"" HEX64 "\",\"role\":\"device\",\"certificate\":\"b\"}", "ca: missing"},
    {joined,
	"{\"device\":\"" HEX64 "\",\"role\":\"device\",\"certificate\":\"b\\u0007\",\"ca\":\"b\"}",
	"certificate: must be printable text with newlines"},
    {joined, "{\"device\":\"" HEX64 "\",\"role\":\"device\"," CERTS ",\"signer\":7}",
	"signer: must be a string"},
    {joined, "{\"device\":\"" HEX64 "\",\"role\":\"device\"," CERTS ",\"renew_after\":-1}",
	"renew_after: must be a whole number from 0 to 9007199254740991"},
    {aborted, "{\"reason\":\"no-data\"}", NULL},
    {aborted, "{\"reason\":\"no-data\",\"log\":\"a\\nb\\tc\",\"x\":0}", NULL},
    {aborted, "{\"log\":\"\"}", "reason: missing"},
    {aborted, "{\"reason\":\"no data\"}", "reason: must be letters, digits, '_', '.' and '-'"},
    {aborted, "{\"reason\":\"x\",\"log\":\"\\u001b[31m\"}",
	"log: must be printable text with newlines"},
    {aborted, "{\"reason\":\"x\",\"log\":\"a\\rb\"}", "log: must be printable text with newlines"},
    {problem, "{}", NULL},
    {problem, "{\"type\":\"urn:x\",\"instance\":\"/y\",\"status\":404}", NULL},
    {problem, "{\"status\":99}", "status: must be a whole number from 100 to 599"},
    {problem, "{\"type\":7}", "type: must be a string"},
    {problem, "{\"title\":7}", "title: must be a string"},
    {token, "{}", NULL},
    {token, "{\"uses\":0}", "uses: must be a whole number from 1 to 1000000"},
    {token, "{\"uses\":1000001}", "uses: must be a whole number from 1 to 1000000"},
    {token, "{\"expires_s\":0}", "expires_s: must be a whole number from 1 to 316224000"},
    {token, "{\"role\":\"\"}", "role: must be letters, digits, '_', '.' and '-'"},
    {token, "{\"role\":\"aaaaaaaaaaaaaaaa\"}", "role: longer than 15 bytes"},
    {token, "{\"labels\":[]}", "labels: must be an object"},
    {token, "{\"labels\":{\"a b\":\"c\"}}",
	"labels.a b: a key of at most 63 bytes must be letters, digits, '_', '.' and '-'"},
    {token, "{\"labels\":{\"a\":\"c\\n\"}}", "labels.a: must be printable text"},
    {token, "{\"uses\":1,\"uses\":2}", "JSON key \"uses\" used twice"},
    {token, "{\"role\":\"root\"}", "role: must be device, reader, submitter or admin"},
    {token, "{\"role\":\"submitter\"}", NULL},
    {token, "{\"access\":true}", NULL},
    {token, "{\"access\":true,\"role\":\"submitter\",\"expires_s\":9}", NULL},
    {token, "{\"access\":true,\"role\":\"admin\"}",
	"role: of an access token must be reader, submitter or metrics"},
    {token, "{\"access\":true,\"role\":\"device\"}",
	"role: of an access token must be reader, submitter or metrics"},
    {token, "{\"access\":true,\"uses\":1}", "uses: are not counted for an access token"},
    {token, "{\"access\":true,\"labels\":{}}",
	"labels: are for devices that join, not for an access token"},
    {token, "{\"access\":1}", "access: must be true or false"},
};

static void
test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct why why = {""};
		enum err e = rows[i].decode(rows[i].text, &why);
		/* Once the ids of a task stand, it can be aborted. */
		bool ids = rows[i].decode == task &&
		    strncmp(rows[i].text, "{" TASK_IDS, sizeof(TASK_IDS)) == 0;
		enum err bad = ids ? ERR_UNSUPPORTED : ERR_INVALID;
		bool right = rows[i].reason ? e == bad && strcmp(why.text, rows[i].reason) == 0
					    : e == ERR_OK;
		if (!right)
			print_error("%s: %s: %s\n", rows[i].text, err_name(e), why.text);
		assert_true(right);
	}
}

/* Every prefix of a good message is refused, and none reads past its end. */
static void
test_truncated(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t len = strlen(rows[i].text);
		char *copy = strdup(rows[i].text);
		assert_non_null(copy);
		for (size_t cut = len; !rows[i].reason && cut-- > 0;) {
			copy[cut] = '\0';
			assert_int_equal(rows[i].decode(copy, NULL), ERR_INVALID);
		}
		free(copy);
	}
}

static void
check_task(const struct task *t)
{
	assert_false(t->wait);
	assert_int_equal(t->kind, TASK_TRAIN);
	assert_string_equal(t->task, HEX32);
	assert_string_equal(t->job, HEX32);
	assert_int_equal(t->round, 12);
	assert_string_equal(t->model, HEX64);
	assert_int_equal(t->model_bytes, 4096);
	assert_string_equal(t->from, OTHER64);
	assert_int_equal(t->from_bytes, 1300);
	assert_true(t->seed == JSON_INT_MAX);
	assert_true(t->deadline_s == 99.5);
	assert_string_equal(t->state, HEX64);
	assert_true(t->state_bytes == 8192 && t->counted == 11);
	assert_int_equal(t->recipe.net.layer_count, 1);
	assert_int_equal(t->recipe.net.layers[0].out, 2);
	assert_string_equal(t->recipe.data.name, "d");
}

static void
test_task(void **state)
{
	(void)state;
	struct task in = {.kind = TASK_TRAIN,
	    .task = HEX32,
	    .job = HEX32,
	    .round = 12,
	    .model = HEX64,
	    .model_bytes = 4096,
	    .from = OTHER64,
	    .from_bytes = 1300,
	    .seed = JSON_INT_MAX,
	    .deadline_s = 99.5,
	    .state = HEX64,
	    .state_bytes = 8192,
	    .counted = 11};
	struct task out, again;
	struct buf b, second;
	struct json *recipe = NULL;

	assert_int_equal(json_parse(&recipe, RECIPE, strlen(RECIPE), NULL), ERR_OK);
	assert_int_equal(recipe_parse(&in.recipe, recipe, true, NULL), ERR_OK);
	json_free(recipe);
	buf_init(&b, 10000);
	buf_init(&second, 10000);
	assert_int_equal(messages_task_encode(&b, &in), ERR_OK);
	assert_non_null(strstr(b.data, "\"recipe\":" RECIPE));
	assert_int_equal(messages_task_decode(&out, b.data, b.len, NULL), ERR_OK);
	check_task(&out);
	assert_int_equal(messages_task_encode(&second, &out), ERR_OK);
	assert_string_equal(second.data, b.data);
	assert_int_equal(messages_task_decode(&again, second.data, second.len, NULL), ERR_OK);
	check_task(&again);
	messages_task_deinit(&in);
	messages_task_deinit(&out);
	messages_task_deinit(&again);
	buf_deinit(&b);
	buf_deinit(&second);
}

/* A job with several codecs: the task names one, and keeps what else stands in "upload". */
static void
test_task_codec(void **state)
{
	(void)state;
	static const char text[] =
	    "{\"model\":{\"layers\":[{\"type\":\"linear\",\"out\":2}],"
	    "\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4],\"classes\":2},"
	    "\"local\":{\"optimizer\":{\"rate\":0.1}},"
	    "\"upload\":{\"codec\":[\"sparse\",\"int8\"],\"share\":0.25}}";
	struct task in = {.kind = TASK_TRAIN,
	    .task = HEX32,
	    .job = HEX32,
	    .round = 12,
	    .model = HEX64,
	    .model_bytes = 4096,
	    .codec = "int8",
	    .deadline_s = 1};
	struct task out;
	struct buf b;
	struct json *recipe = NULL;

	assert_int_equal(json_parse(&recipe, text, strlen(text), NULL), ERR_OK);
	assert_int_equal(recipe_parse(&in.recipe, recipe, true, NULL), ERR_OK);
	json_free(recipe);
	buf_init(&b, 10000);
	assert_int_equal(messages_task_encode(&b, &in), ERR_OK);
	assert_non_null(strstr(b.data, "\"upload\":{\"share\":0.25,\"codec\":\"int8\"}"));
	assert_int_equal(messages_task_decode(&out, b.data, b.len, NULL), ERR_OK);
	assert_string_equal(out.recipe.codec, "int8");
	assert_int_equal(out.recipe.upload.codec_count, 1);
	assert_false(recipe_upload_feedback(&out.recipe.upload, codec_find(CODEC_INT8)));
	assert_true(recipe_upload_feedback(&out.recipe.upload, codec_find(CODEC_SPARSE)));
	messages_task_deinit(&in);
	messages_task_deinit(&out);
	buf_deinit(&b);
}

static void
test_wait(void **state)
{
	(void)state;
	struct task in = {.wait = true, .wait_s = 30, .reason = "not-selected"}, out;
	struct buf b;

	buf_init(&b, 1000);
	assert_int_equal(messages_task_encode(&b, &in), ERR_OK);
	assert_string_equal(b.data, "{\"wait\":30,\"reason\":\"not-selected\"}");
	assert_int_equal(messages_task_decode(&out, b.data, b.len, NULL), ERR_OK);
	assert_true(out.wait);
	assert_int_equal(out.wait_s, 30);
	assert_string_equal(out.reason, "not-selected");
	messages_task_deinit(&out);
	buf_deinit(&b);
}

/* A task that this build cannot do keeps the ids by which the device aborts it. */
static void
test_unsupported(void **state)
{
	(void)state;
	static const char *const texts[] = {"{\"kind\":\"prove\",\"task\":\"" HEX32
					    "\",\"job\":\"" HEX32 "\",\"round\":12,\"what\":1}",
	    "{\"kind\":\"train\",\"task\":\"" HEX32 "\",\"job\":\"" HEX32 "\",\"round\":12," MODEL
	    ",\"seed\":1,\"deadline_s\":1}",
	    "{\"kind\":\"train\",\"task\":\"" HEX32 "\",\"job\":\"" HEX32 "\",\"round\":12," MODEL
	    ",\"seed\":1,\"deadline_s\":1,\"recipe\":{\"model\":{\"layers\":[{\"type\":"
	    "\"attention\"}],"
	    "\"loss\":\"mse\"},\"data\":{\"name\":\"d\",\"shape\":[1]}}}",
	    "{\"kind\":\"train\",\"task\":\"" HEX32 "\",\"job\":\"" HEX32
	    "\",\"round\":12,\"model\":7}"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct task t;
		struct why why = {""};
		assert_int_equal(
		    messages_task_decode(&t, texts[i], strlen(texts[i]), &why), ERR_UNSUPPORTED);
		assert_true(why.text[0]);
		assert_int_equal(t.kind, i == 0 ? TASK_UNKNOWN : TASK_TRAIN);
		assert_string_equal(t.task, HEX32);
		assert_string_equal(t.job, HEX32);
		assert_int_equal(t.round, 12);
		assert_null(t.recipe.text);
		messages_task_deinit(&t);
	}
}

/* The deepest and largest job that is accepted travels in a task. */
static void
test_deepest(void **state)
{
	(void)state;
	static const char head[] =
	    "{\"name\":\"j\",\"round\":{\"goal\":1},"
	    "\"model\":{\"layers\":[{\"type\":\"linear\",\"out\":2}],\"loss\":\"mse\"},"
	    "\"data\":{\"name\":\"d\",\"shape\":[4]},\"local\":{\"optimizer\":{\"rate\":0.1}},"
	    "\"params\":{\"a\":";
	struct job_spec job;
	struct task out,
	    in = {.kind = TASK_TRAIN,
		.task = HEX32,
		.job = HEX32,
		.round = 1,
		.model = HEX64,
		.model_bytes = 1};
	struct buf b;
	char text[1000] = "";

	strcat(text, head);
	for (int i = 2; i < JOB_DEPTH_MAX; i++)
		strcat(text, "[");
	for (int i = 2; i < JOB_DEPTH_MAX; i++)
		strcat(text, "]");
	strcat(text, "}}");
	assert_int_equal(job_parse(&job, text, strlen(text), NULL), ERR_OK);
	in.recipe = job.recipe;
	buf_init(&b, 10000);
	assert_int_equal(messages_task_encode(&b, &in), ERR_OK);
	assert_int_equal(messages_task_decode(&out, b.data, b.len, NULL), ERR_OK);
	messages_task_deinit(&out);
	job_deinit(&job);
	buf_deinit(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_truncated),
	    cmocka_unit_test(test_task),
	    cmocka_unit_test(test_task_codec),
	    cmocka_unit_test(test_wait),
	    cmocka_unit_test(test_unsupported),
	    cmocka_unit_test(test_deepest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
