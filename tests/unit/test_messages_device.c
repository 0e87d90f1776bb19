/* stages: gcc clang openssl address */
/* What a device says of itself and its work, what is answered to it, and tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "messages_fixture.h"

static void
fill_offer(struct offer *in)
{
	static message_name classes[2] = {"cat", "d\xc3\xb6g"};

	in->protocol = MESSAGES_PROTOCOL;
	strcpy(in->agent, "1.0");
	strcpy(in->data[0].name, "pets");
	in->data[0].examples = 600;
	in->data[0].tokens = 38401;
	in->data[0].classes = classes;
	in->data[0].class_count = 2;
	strcpy(in->data[1].name, "noise");
	in->data_count = 2;
	strcpy(in->trainers[0], "builtin");
	strcpy(in->trainers[1], "torch");
	strcpy(in->evaluators[0], "torch");
	in->evaluator_count = 1;
	in->trainer_count = 2;
	strcpy(in->codecs[0], "f32");
	in->codec_count = 1;
	for (const char *const *name = net_spec_type_names(); *name; name++)
		strcpy(in->layers[in->layer_count++], *name);
	strcpy(in->features[0], "prox");
	strcpy(in->features[1], "later");
	in->feature_count = 2;
	in->memory_bytes = 1ull << 33;
	strcpy(in->held_models[0], HEX64);
	in->held_count = 1;
	in->wait_s = 50;
	in->time_ms = 1763000000123;
	memcpy(in->unsent[0], HEX64, 32);
	in->unsent_count = 1;
	in->has_disk_free = true;
	in->disk_free_bytes = 7;
	strcpy(in->unready, "on-battery");
	strcpy(in->machine, HEX64);
	in->says_figures = true;
	in->trainer_figures = 1;
	in->evaluator_figures = 1;
	memcpy(in->resting[0].job, HEX64, 16);
	in->resting[0].seconds = 59;
	memcpy(in->resting[1].job, &HEX64[1], 16);
	in->resting[1].seconds = 3600;
	in->resting_count = 2;
}

static void
test_offer(void **state)
{
	(void)state;
	static struct offer in, out;
	struct buf b;

	fill_offer(&in);
	buf_init(&b, 100000);
	assert_int_equal(messages_offer_encode(&b, &in), ERR_OK);
	assert_int_equal(messages_offer_decode(&out, b.data, b.len, NULL), ERR_OK);
	assert_string_equal(out.agent, "1.0");
	assert_int_equal(out.protocol, 1);
	assert_int_equal(out.data_count, 2);
	assert_string_equal(out.data[0].name, "pets");
	assert_int_equal(out.data[0].examples, 600);
	assert_int_equal(out.data[0].tokens, 38401);
	assert_int_equal(out.data[0].class_count, 2);
	assert_string_equal(out.data[0].classes[1], "d\xc3\xb6g");
	assert_int_equal(out.data[1].class_count, 0);
	assert_null(out.data[1].classes);
	assert_int_equal(out.trainer_count, 2);
	assert_string_equal(out.trainers[1], "torch");
	assert_int_equal(out.evaluator_count, 1);
	assert_string_equal(out.evaluators[0], "torch");
	assert_string_equal(out.codecs[0], "f32");
	assert_int_equal(out.layer_count, in.layer_count);
	assert_string_equal(out.layers[7], "add");
	assert_int_equal(out.feature_count, 2);
	assert_string_equal(out.features[1], "later");
	assert_true(out.memory_bytes == 1ull << 33);
	assert_string_equal(out.held_models[0], HEX64);
	assert_int_equal(out.held_count, 1);
	assert_int_equal(out.wait_s, 50);
	assert_true(out.time_ms == 1763000000123);
	assert_int_equal(out.unsent_count, 1);
	assert_memory_equal(out.unsent[0], HEX64, 32);
	assert_true(out.has_disk_free && out.disk_free_bytes == 7);
	assert_string_equal(out.unready, "on-battery");
	assert_string_equal(out.machine, HEX64);
	assert_true(out.says_figures);
	/* The evaluator is a trainer, too: it is one name. */
	assert_int_equal(out.trainer_figures, 3);
	assert_int_equal(out.evaluator_figures, 1);
	assert_true(messages_offer_gives_figures(&out, "builtin"));
	assert_false(messages_offer_gives_figures(&out, "other"));
	assert_int_equal(out.resting_count, 2);
	assert_memory_equal(out.resting[0].job, HEX64, 16);
	assert_int_equal(out.resting[0].seconds, 59);
	assert_int_equal(out.resting[1].seconds, 3600);
	messages_offer_deinit(&out);
	assert_int_equal(out.data_count, 0);
	messages_offer_deinit(&out);
	buf_deinit(&b);
}

/* A full disk is something else than a device that does not say. */
static void
test_offer_unsaid(void **state)
{
	(void)state;
	static struct offer o;
	static const char *const texts[] = {
	    "{\"protocol\":1}", "{\"protocol\":1,\"disk_free_bytes\":0}"};
	struct buf b;

	for (size_t full = 0; full < 2; full++) {
		buf_init(&b, 1000);
		assert_int_equal(
		    messages_offer_decode(&o, texts[full], strlen(texts[full]), NULL), ERR_OK);
		assert_true(o.time_ms == 0 && *o.machine == '\0');
		assert_true(o.has_disk_free == (full == 1));
		assert_int_equal(messages_offer_encode(&b, &o), ERR_OK);
		assert_true((strstr(buf_str(&b), "disk_free_bytes") != NULL) == (full == 1));
		assert_null(strstr(buf_str(&b), "machine"));
		assert_null(strstr(buf_str(&b), "unready"));
		assert_null(strstr(buf_str(&b), "time_ms"));
		messages_offer_deinit(&o);
		buf_deinit(&b);
	}
}

static void
make_list(struct buf *b, const char *key, const char *item, size_t n)
{
	buf_reset(b);
	assert_int_equal(buf_printf(b, "{\"protocol\":1,\"%s\":[", key), ERR_OK);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_printf(b, "%s%s", i ? "," : "", item), ERR_OK);
	assert_int_equal(buf_printf(b, "]}"), ERR_OK);
}

static void
test_offer_counts(void **state)
{
	(void)state;
	static const char *const lists[][2] = {{"trainers", "\"a\""}, {"evaluators", "\"a\""},
	    {"codecs", "\"a\""}, {"layers", "\"a\""}, {"held_models", "\"" HEX64 "\""},
	    {"unsent", "\"" HEX32 "\""},
	    {"data", "{\"name\":\"a\",\"examples\":1,\"classes\":[\"x\"]}"}};
	struct why why;
	struct buf b;

	buf_init(&b, 1 << 20);
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		make_list(&b, lists[i][0], lists[i][1], MESSAGES_LIST_MAX);
		assert_int_equal(offer(b.data, &why), ERR_OK);
		make_list(&b, lists[i][0], lists[i][1], MESSAGES_LIST_MAX + 1);
		assert_int_equal(offer(b.data, &why), ERR_INVALID);
		assert_non_null(strstr(why.text, "must have 0 to 64 items"));
	}
	buf_deinit(&b);
}

static void
test_report(void **state)
{
	(void)state;
	static struct report in, out;
	struct buf b;

	in.has_evaluate = true;
	in.eval_examples = 60;
	in.eval_loss = 0.3333333333333333;
	in.eval_accuracy = NAN;
	strcpy(in.metrics[0].name, "val/top 5");
	in.metrics[0].value = -1e-9;
	strcpy(in.metrics[1].name, "broken");
	in.metrics[1].value = INFINITY;
	in.metric_count = 2;
	buf_init(&b, 20000);
	assert_int_equal(messages_report_encode(&b, &in), ERR_OK);
	assert_string_equal(b.data,
	    "{\"evaluate\":{\"examples\":60,\"loss\":0.3333333333333333},\"metrics\":{\"val/top "
	    "5\":-1e-09}}");
	assert_int_equal(messages_report_decode(&out, b.data, b.len, NULL), ERR_OK);
	assert_true(out.has_evaluate && out.eval_examples == 60);
	assert_true(out.eval_loss == in.eval_loss && isnan(out.eval_accuracy));
	assert_int_equal(out.metric_count, 1);
	assert_string_equal(out.metrics[0].name, "val/top 5");
	assert_true(out.metrics[0].value == -1e-9);
	assert_int_equal(messages_report_decode(&out, "{}", 2, NULL), ERR_OK);
	assert_false(out.has_evaluate);
	buf_deinit(&b);
}

static bool
decodes(const char *text, const char *about)
{
	static struct report out;
	struct why said = {""};
	enum err e = messages_report_decode(&out, text, strlen(text), &said);

	if (e && (e != ERR_INVALID || !strstr(said.text, about)))
		fail_msg("%s: %s", text, said.text);
	return !e;
}

static void
test_report_counted(void **state)
{
	static struct report in, out;
	struct buf b;

	(void)state;
	in.trained = (struct report_counted){true, 2.5, true, 40, 30};
	in.has_evaluate = true;
	in.eval_examples = 7;
	in.eval_loss = 1;
	in.eval_accuracy = NAN;
	in.evaluated = (struct report_counted){true, 7, false, 0, 0};
	buf_init(&b, 20000);
	assert_int_equal(messages_report_encode(&b, &in), ERR_OK);
	assert_string_equal(b.data,
	    "{\"trained\":{\"loss_count\":2.5,\"labels\":40,\"right\":30},\"evaluate\":{"
	    "\"examples\":7,\"loss\":1,\"loss_count\":7}}");
	assert_int_equal(messages_report_decode(&out, b.data, b.len, NULL), ERR_OK);
	assert_true(out.trained.told && out.trained.loss_count == 2.5 && out.trained.has_labels);
	assert_true(out.trained.labels == 40 && out.trained.right == 30);
	assert_true(messages_report_accuracy(&out.trained) == 0.75);
	assert_true(out.evaluated.told && !out.evaluated.has_labels);
	assert_true(isnan(messages_report_accuracy(&out.evaluated)));
	buf_deinit(&b);
	assert_true(decodes("{\"trained\":{\"loss_count\":0,\"labels\":0,\"right\":0}}", ""));
	assert_true(decodes("{\"evaluate\":{\"examples\":1}}", ""));
	assert_false(decodes("{\"trained\":{}}", "trained"));
	assert_false(decodes("{\"trained\":{\"labels\":1,\"right\":1}}", "trained"));
	assert_false(decodes("{\"trained\":{\"loss_count\":-1}}", "trained.loss_count"));
	assert_false(decodes("{\"trained\":{\"loss_count\":1e19}}", "trained.loss_count"));
	assert_false(decodes("{\"trained\":{\"loss_count\":1,\"labels\":1}}", "trained.right"));
	assert_false(
	    decodes("{\"trained\":{\"loss_count\":1,\"labels\":1,\"right\":2}}", "trained.right"));
	assert_false(decodes(
	    "{\"trained\":{\"loss_count\":1,\"labels\":1.5,\"right\":1}}", "trained.labels"));
	assert_false(decodes("{\"evaluate\":{\"examples\":1,\"loss_count\":1,\"labels\":1,"
			     "\"right\":2}}",
	    "evaluate.right"));
}

static void
test_report_limits(void **state)
{
	(void)state;
	static struct report in, out;
	char *text = malloc(REPORT_MAX + 2);
	struct buf b;

	assert_non_null(text);
	memset(text, ' ', REPORT_MAX + 2);
	memcpy(text, "{}", 2);
	assert_int_equal(messages_report_decode(&out, text, REPORT_MAX, NULL), ERR_OK);
	assert_int_equal(messages_report_decode(&out, text, REPORT_MAX + 1, NULL), ERR_LIMIT);
	free(text);
	buf_init(&b, 100000);
	in.metric_count = MESSAGES_LIST_MAX;
	for (size_t i = 0; i < MESSAGES_LIST_MAX; i++) {
		memset(in.metrics[i].name, 'm', RECIPE_NAME_MAX - 1);
		snprintf(in.metrics[i].name, 4, "%02zu", i);
		in.metrics[i].name[2] = '-';
		in.metrics[i].value = -1.7976931348623157e-308;
	}
	assert_int_equal(messages_report_encode(&b, &in), ERR_OK);
	assert_true(b.len <= REPORT_MAX);
	assert_int_equal(messages_report_decode(&out, b.data, b.len, NULL), ERR_OK);
	assert_int_equal(out.metric_count, MESSAGES_LIST_MAX);
	/* Quotes double in the text. */
	for (size_t i = 0; i < MESSAGES_LIST_MAX; i++)
		memset(in.metrics[i].name, '"', RECIPE_NAME_MAX - 1);
	buf_reset(&b);
	assert_int_equal(messages_report_encode(&b, &in), ERR_LIMIT);
	assert_int_equal(b.len, 0);
	buf_deinit(&b);
}

static void
test_join(void **state)
{
	(void)state;
	static struct join_request in, out;
	static struct join_answer answer, back;
	struct buf b;

	for (size_t i = 0; i < sizeof(in.csr); i++)
		in.csr[i] = (uint8_t)(i * 7);
	in.csr_len = sizeof(in.csr);
	strcpy(in.name, "gateway \"7\"");
	buf_init(&b, 20000);
	assert_int_equal(messages_join_encode(&b, &in), ERR_OK);
	assert_int_equal(messages_join_decode(&out, b.data, b.len, NULL), ERR_OK);
	assert_int_equal(out.csr_len, sizeof(out.csr));
	assert_memory_equal(out.csr, in.csr, sizeof(in.csr));
	assert_string_equal(out.name, in.name);
	in.csr_len++;
	assert_int_equal(messages_join_encode(&b, &in), ERR_LIMIT);
	strcpy(answer.device, HEX64);
	strcpy(answer.name, "gw");
	strcpy(answer.role, "device");
	strcpy(
	    answer.certificate, "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
	strcpy(answer.ca, "-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----\n");
	answer.renew_after = 1900000000;
	for (int i = 0; i < 2; i++) {
		buf_reset(&b);
		assert_int_equal(messages_joined_encode(&b, &answer), ERR_OK);
		/* A coordinator of before does not tell who signs its receipts. */
		assert_true(!strstr(buf_str(&b), "signer") == (i == 0));
		assert_int_equal(messages_joined_decode(&back, b.data, b.len, NULL), ERR_OK);
		assert_memory_equal(&answer, &back, sizeof(back));
		strcpy(answer.signer,
		    "-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----\n");
	}
	buf_deinit(&b);
}

static void
test_abort(void **state)
{
	(void)state;
	static struct abort_request in = {{ABORT_TRAINER_FAILED, "trainer-failed", 0, 0},
					"line 1\n\x1b[31mred\xff\r\n\tend \xc3\xa9"},
				    out;
	struct buf b;

	buf_init(&b, 20000);
	assert_int_equal(messages_abort_encode(&b, &in), ERR_OK);
	assert_int_equal(messages_abort_decode(&out, b.data, b.len, NULL), ERR_OK);
	assert_string_equal(out.cause.word, "trainer-failed");
	assert_int_equal(out.cause.reason, ABORT_TRAINER_FAILED);
	assert_string_equal(out.log, "line 1\n?[31mred??\n\tend \xc3\xa9");
	memset(in.log, 0x80, sizeof(in.log) - 1);
	buf_reset(&b);
	assert_int_equal(messages_abort_encode(&b, &in), ERR_OK);
	assert_int_equal(messages_abort_decode(&out, b.data, b.len, NULL), ERR_OK);
	assert_int_equal(strlen(out.log), sizeof(out.log) - 1);
	/* A newer device's word goes on as it came. */
	in.cause = abort_reason_parse("lab-in-use");
	buf_reset(&b);
	assert_int_equal(messages_abort_encode(&b, &in), ERR_OK);
	assert_int_equal(messages_abort_decode(&out, b.data, b.len, NULL), ERR_OK);
	assert_string_equal(out.cause.word, "lab-in-use");
	assert_int_equal(out.cause.reason, ABORT_UNKNOWN);
	buf_deinit(&b);
}

/* Without them it is as ever, and they stand together. */
static void
test_abort_memory(void **state)
{
	static struct abort_request in, out;
	struct buf b;

	(void)state;
	in.cause = abort_reason_cause(ABORT_OUT_OF_MEMORY);
	buf_init(&b, 20000);
	assert_int_equal(messages_abort_encode(&b, &in), ERR_OK);
	assert_string_equal(buf_str(&b), "{\"reason\":\"out-of-memory\",\"log\":\"\"}");
	buf_deinit(&b);
	in.cause.needed_bytes = 22199440;
	in.cause.memory_bytes = 4194304;
	buf_init(&b, 20000);
	assert_int_equal(messages_abort_encode(&b, &in), ERR_OK);
	assert_int_equal(messages_abort_decode(&out, b.data, b.len, NULL), ERR_OK);
	assert_int_equal(out.cause.needed_bytes, 22199440);
	assert_int_equal(out.cause.memory_bytes, 4194304);
	buf_deinit(&b);
	static const char *const bad[] = {"{\"reason\":\"x\",\"needed_bytes\":-1}",
	    "{\"reason\":\"x\",\"memory_bytes\":\"1\"}",
	    "{\"reason\":\"x\",\"needed_bytes\":1e300}"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(
		    messages_abort_decode(&out, bad[i], strlen(bad[i]), NULL), ERR_INVALID);
}

static void
test_problem(void **state)
{
	(void)state;
	static struct problem in = {"urn:rivulet:error:stale-round", "The round is over", 409,
				  "round 7"},
			      out;
	char text[1000];
	struct buf b;

	buf_init(&b, 20000);
	assert_int_equal(messages_problem_encode(&b, &in), ERR_OK);
	assert_int_equal(messages_problem_decode(&out, b.data, b.len, NULL), ERR_OK);
	assert_memory_equal(&in, &out, sizeof(out));
	assert_int_equal(messages_problem_decode(&out, "{}", 2, NULL), ERR_OK);
	assert_string_equal(out.type, "about:blank");
	assert_int_equal(out.status, 0);
	/* A longer detail than we keep is cut between characters. */
	snprintf(text, sizeof(text), "{\"detail\":\"\\u001b%253s\xc3\xa9%100s\"}", "", "");
	assert_int_equal(messages_problem_decode(&out, text, strlen(text), NULL), ERR_OK);
	assert_int_equal(out.detail[0], '?');
	assert_int_equal(strlen(out.detail), 254);
	buf_deinit(&b);
}

static void
test_token_request(void **state)
{
	(void)state;
	static struct token_request in = {.uses = 50,
	    .expires_s = 3600,
	    .role = "admin",
	    .label_count = 2,
	    .labels = {{"site", "berlin mitte"}, {"gpu", "no"}},
	    .suspended = true};
	static struct token_request out;
	struct buf b;

	buf_init(&b, 20000);
	assert_int_equal(messages_token_encode(&b, &in), ERR_OK);
	assert_int_equal(messages_token_decode(&out, b.data, b.len, NULL), ERR_OK);
	assert_memory_equal(&in, &out, sizeof(out));
	assert_int_equal(messages_token_decode(&out, "{}", 2, NULL), ERR_OK);
	assert_true(out.uses == 1 && out.expires_s == 86400 && out.label_count == 0);
	assert_string_equal(out.role, "device");
	assert_false(out.suspended);
	buf_reset(&b);
	for (int n = 32; n <= 33; n++) {
		buf_reset(&b);
		assert_int_equal(buf_printf(&b, "{\"labels\":{\"k0\":\"v\""), ERR_OK);
		for (int i = 1; i < n; i++)
			assert_int_equal(buf_printf(&b, ",\"k%d\":\"v\"", i), ERR_OK);
		assert_int_equal(buf_printf(&b, "}}"), ERR_OK);
		assert_int_equal(messages_token_decode(&out, b.data, b.len, NULL),
		    n == 32 ? ERR_OK : ERR_INVALID);
	}
	buf_deinit(&b);
}

static void
test_token_roles(void **state)
{
	static const struct {
		const char *text, *why; /* why: NULL, or a part of the reason */
	} rows[] = {
	    {"{\"access\": true, \"role\": \"metrics\"}", NULL},
	    {"{\"role\": \"metrics\"}", "access tokens alone"},
	    {"{\"access\": true, \"role\": \"device\"}", "reader, submitter or metrics"},
	    {"{\"access\": true, \"role\": \"metric\"}", "reader, submitter or metrics"},
	    {"{\"role\": \"root\"}", "device, reader, submitter or admin"},
	    {"{\"role\": \"admin\", \"suspended\": true}", NULL},
	    {"{\"access\": true, \"suspended\": false}", NULL},
	    {"{\"access\": true, \"suspended\": true}", "for devices that join"},
	    {"{\"suspended\": 1}", "suspended"},
	};
	struct token_request out;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct why why = {""};
		enum err e = messages_token_decode(&out, rows[i].text, strlen(rows[i].text), &why);
		if (rows[i].why ? !e || !strstr(why.text, rows[i].why) : e)
			fail_msg("%s: %s", rows[i].text, why.text);
	}
}

static void
test_token_text(void **state)
{
	(void)state;
	struct token in, out;
	char text[TOKEN_TEXT_MAX], broken[TOKEN_TEXT_MAX + 2];

	for (size_t i = 0; i < sizeof(in); i++)
		((uint8_t *)&in)[i] = (uint8_t)(i * 37 + 1);
	messages_token_text(text, &in);
	assert_int_equal(strlen(text), 151);
	assert_memory_equal(text, "rvt1-01264b7095badf04-29", 24);
	assert_int_equal(messages_token_parse(&out, text), ERR_OK);
	assert_memory_equal(&in, &out, sizeof(in));
	memset(&out, 0xee, sizeof(out));
	for (size_t i = 0; i < strlen(text); i++) {
		strcpy(broken, text);
		broken[i] = 'G';
		assert_int_equal(messages_token_parse(&out, broken), ERR_INVALID);
		broken[i] = '\0';
		assert_int_equal(messages_token_parse(&out, broken), ERR_INVALID);
	}
	snprintf(broken, sizeof(broken), "%s\n", text);
	assert_int_equal(messages_token_parse(&out, broken), ERR_INVALID);
	snprintf(broken, sizeof(broken), " %s", text);
	assert_int_equal(messages_token_parse(&out, broken), ERR_INVALID);
	assert_int_equal(out.id[0], 0xee);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_offer),
	    cmocka_unit_test(test_offer_unsaid),
	    cmocka_unit_test(test_offer_counts),
	    cmocka_unit_test(test_report),
	    cmocka_unit_test(test_report_counted),
	    cmocka_unit_test(test_report_limits),
	    cmocka_unit_test(test_join),
	    cmocka_unit_test(test_abort),
	    cmocka_unit_test(test_abort_memory),
	    cmocka_unit_test(test_problem),
	    cmocka_unit_test(test_token_request),
	    cmocka_unit_test(test_token_roles),
	    cmocka_unit_test(test_token_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
