/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guards.h"
#include "hex.h"
#include "history.h"
#include "job.h"
#include "json.h"
#include "manifest.h"
#include "sign.h"
#include "task_kind.h"

/* What a chain of good entries may still say that makes no sense. Entries are made here without a chain around them. */

#define ID(digit) digit digit digit digit digit digit digit digit
#define HASH(digit) ID(digit) ID(digit) ID(digit) ID(digit) ID(digit) ID(digit) ID(digit) ID(digit)

struct telling {
	struct cmd_verify_history h;
	struct why why;
	struct record_detail details[4];
	size_t count;
};

static int
setup(void **state)
{
	*state = calloc(1, sizeof(struct telling));
	return *state ? 0 : -1;
}

static int
teardown(void **state)
{
	struct telling *t = *state;

	cmd_verify_history_deinit(&t->h);
	free(t);
	return 0;
}

/* Tells an entry whose job is all zeros. */
static enum err
tell(struct telling *t, uint64_t round, const char *text)
{
	struct json *v = NULL;

	assert_int_equal(json_parse(&v, text, strlen(text), &t->why), ERR_OK);
	struct cmd_verify_entry e = {.link = {.seq = 1, .round = round},
	    .body = v,
	    .event = record_event_find(json_string(json_get(v, "event"))),
	    .places = json_count(json_get(v, "details")),
	    .details = t->details,
	    .count = t->count};
	enum err result = cmd_verify_history_add(&t->h, &e, &t->why);
	json_free(v);
	return result;
}

#define OPT \
	"\"rule\":{\"name\":\"mean\"},\"server_optimizer\":{\"name\":\"sgd\",\"rate\":1," \
	"\"momentum\":0}"

/* A round's body without reports; base and model are hex digits, repeated. */
static const char *
round_body(const char *event, uint64_t round, char base, char model)
{
	static char text[1024];
	char b[65], m[65];

	memset(b, base, 64);
	memset(m, model, 64);
	b[64] = m[64] = '\0';
	snprintf(text, sizeof(text),
	    "{\"event\":\"%s\",\"job\":\"" ID("0") ID("0") ID("0")
		ID("0") "\",\"round\":%u,\"base\":\"%s\",\"model\":\"%s\"," OPT
			",\"reports\":0,\"examples\":0}",
	    event, (unsigned)round, b, m);
	return text;
}

static enum err
committed(struct telling *t, uint64_t round, char base, char model)
{
	return tell(t, round, round_body("round.committed", round, base, model));
}

static void
rounds_follow(void **state)
{
	struct telling *t = *state;

	assert_int_equal(
	    tell(t, 0, "{\"event\":\"job.submitted\",\"model\":\"" HASH("a") "\"}"), ERR_OK);
	assert_int_equal(committed(t, 1, 'a', 'b'), ERR_OK);
	assert_int_equal(committed(t, 2, 'b', 'c'), ERR_OK);
	/* What a newer coordinator tells is passed over. */
	assert_int_equal(tell(t, 3, round_body("round.postponed", 3, 'x', 'y')), ERR_OK);
	assert_int_equal(committed(t, 3, 'c', 'd'), ERR_OK);
	assert_int_equal(tell(t, 4, round_body("round.failed", 4, 'd', 'd')), ERR_OK);
	assert_int_equal(committed(t, 5, 'd', 'e'), ERR_OK);
	assert_int_equal(t->h.committed, 4);
	assert_int_equal(t->h.failed, 1);
}

/* The same with facts before "reports". */
static enum err
committed_with(struct telling *t, uint64_t round, char base, char model, const char *facts)
{
	char text[2048], *at;

	snprintf(text, sizeof(text), "%s", round_body("round.committed", round, base, model));
	at = strstr(text, "\"reports\"");
	memmove(at + strlen(facts), at, strlen(at) + 1);
	memcpy(at, facts, strlen(facts));
	return tell(t, round, text);
}

#define BACK_TO(digit) "\"guard\":{\"do\":\"rollback\",\"round\":1,\"base\":\"" HASH(digit) "\"},"

/* Going back to an older model is a new round on it, if the round before says so. */
static void
a_guard_goes_back(void **state)
{
	struct telling *t = *state;

	assert_int_equal(committed(t, 1, 'a', 'b'), ERR_OK);
	assert_int_equal(committed(t, 2, 'b', 'c'), ERR_OK);
	assert_int_equal(committed_with(t, 3, 'c', 'd', BACK_TO("b")), ERR_OK);
	assert_int_equal(committed(t, 4, 'b', 'e'), ERR_OK);
	assert_int_equal(committed_with(t, 5, 'e', 'f', BACK_TO("9")), ERR_CORRUPT);
	assert_string_equal(t->why.text, "its guard goes back to no model of its job");
}

static void
going_back_unsaid(void **state)
{
	struct telling *t = *state;

	assert_int_equal(committed(t, 1, 'a', 'b'), ERR_OK);
	assert_int_equal(committed(t, 2, 'b', 'c'), ERR_OK);
	assert_int_equal(committed(t, 3, 'b', 'd'), ERR_CORRUPT);
	assert_string_equal(t->why.text, "its base is not what the round before left");
}

static void
said_and_not_done(void **state)
{
	struct telling *t = *state;

	assert_int_equal(committed(t, 1, 'a', 'b'), ERR_OK);
	assert_int_equal(committed_with(t, 2, 'b', 'c', BACK_TO("b")), ERR_OK);
	assert_int_equal(committed(t, 3, 'c', 'd'), ERR_CORRUPT);
}

/* --- against the job's document */

static void
submitted(struct telling *t, const char *aggregate, const char *more)
{
	char text[2048];

	snprintf(text, sizeof(text),
	    "{\"name\":\"x\",\"model\":{\"layers\":[{\"type\":\"linear\",\"out\":2}],\"loss\":"
	    "\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4],\"classes\":2},\"local\":{"
	    "\"steps\":1,\"optimizer\":{\"rate\":1}},\"round\":{\"goal\":1},\"aggregate\":{%s}%s}",
	    aggregate, more);
	struct cmd_verify_job *j = calloc(1, sizeof(*j));
	assert_non_null(j);
	t->h.jobs = j;
	t->h.job_count = 1;
	assert_int_equal(cmd_verify_guards_new(&j->schedule, text, strlen(text)), ERR_OK);
	assert_non_null(j->schedule);
}

#define SCALED "\"server_optimizer\":{\"scale\":{\"by\":\"linear\",\"reports\":2}}"
#define GUARDED \
	",\"evaluate\":{\"by\":\"coordinator\"},\"guard\":{\"metric\":\"accuracy\",\"drop\":0.25," \
	"\"do\":\"rollback\"}"
#define METRIC(x) "\"evaluate\":{\"examples\":1,\"loss\":1,\"accuracy\":" x "},"

static void
a_guard_follows_its_document(void **state)
{
	struct telling *t = *state;

	submitted(t, "", GUARDED);
	assert_int_equal(committed_with(t, 1, 'a', 'b', METRIC("0.875")), ERR_OK);
	assert_int_equal(committed_with(t, 2, 'b', 'c', METRIC("0.625")), ERR_OK);
	assert_int_equal(committed_with(t, 3, 'c', 'd', METRIC("0.5") BACK_TO("b")), ERR_OK);
	assert_int_equal(committed_with(t, 4, 'b', 'e', METRIC("0.75")), ERR_OK);
	/* A collapse, and nothing done. */
	assert_int_equal(committed_with(t, 5, 'e', 'f', METRIC("0.25")), ERR_CORRUPT);
	assert_string_equal(t->why.text, "its guard says \"\", its rounds \"rollback\"");
	cmd_verify_history_deinit(&t->h);
	/* No collapse, and yet back. */
	submitted(t, "", GUARDED);
	assert_int_equal(committed_with(t, 1, 'a', 'b', METRIC("0.875")), ERR_OK);
	assert_int_equal(committed_with(t, 2, 'b', 'c', METRIC("0.875") BACK_TO("b")), ERR_CORRUPT);
	cmd_verify_history_deinit(&t->h);
	/* Back to another than the best. */
	submitted(t, "", GUARDED);
	assert_int_equal(committed_with(t, 1, 'a', 'b', METRIC("0.75")), ERR_OK);
	assert_int_equal(committed_with(t, 2, 'b', 'c', METRIC("0.875")), ERR_OK);
	assert_int_equal(committed_with(t, 3, 'c', 'd', METRIC("0.5") BACK_TO("b")), ERR_CORRUPT);
	assert_string_equal(t->why.text, "its guard goes back to another model");
}

/* A round of none leaves the factor as it was, so that no manifest is needed. */
static void
a_factor_follows_the_reports(void **state)
{
	struct telling *t = *state;
	char text[2048], *at;

	submitted(t, SCALED, "");
	assert_int_equal(committed(t, 1, 'a', 'b'), ERR_OK);
	cmd_verify_history_deinit(&t->h);
	submitted(t, SCALED, "");
	snprintf(text, sizeof(text), "%s", round_body("round.committed", 1, 'a', 'b'));
	at = strstr(text, "\"momentum\"");
	memmove(at + 11, at, strlen(at) + 1);
	memcpy(at, "\"factor\":2,", 11);
	assert_int_equal(tell(t, 1, text), ERR_CORRUPT);
	assert_string_equal(t->why.text, "its rate's factor is 2, not 1");
}

/* Of a job without guard and scale: no record may say that it has them. */
static void
a_plain_job_goes_on(void **state)
{
	struct telling *t = *state;
	char text[2048], *at;

	submitted(t, "", "");
	assert_int_equal(committed(t, 1, 'a', 'b'), ERR_OK);
	assert_int_equal(committed_with(t, 2, 'b', 'c', METRIC("0.875")), ERR_OK);
	assert_int_equal(committed_with(t, 3, 'c', 'd', METRIC("0") BACK_TO("b")), ERR_CORRUPT);
	assert_string_equal(t->why.text, "its guard says \"rollback\", its rounds \"\"");
	cmd_verify_history_deinit(&t->h);
	submitted(t, "", "");
	snprintf(text, sizeof(text), "%s", round_body("round.committed", 1, 'a', 'b'));
	at = strstr(text, "\"momentum\"");
	memmove(at + 11, at, strlen(at) + 1);
	memcpy(at, "\"factor\":3,", 11);
	assert_int_equal(tell(t, 1, text), ERR_CORRUPT);
	assert_string_equal(t->why.text, "its rate's factor is 3, not 1");
}

static void
a_round_is_missing(void **state)
{
	struct telling *t = *state;

	assert_int_equal(committed(t, 7, 'a', 'b'), ERR_OK); /* a job older than the log */
	assert_int_equal(committed(t, 9, 'b', 'c'), ERR_CORRUPT);
	assert_string_equal(t->why.text, "round 9 follows round 7 of its job");
}

static void
a_round_twice(void **state)
{
	struct telling *t = *state;

	assert_int_equal(committed(t, 1, 'a', 'b'), ERR_OK);
	assert_int_equal(committed(t, 1, 'a', 'b'), ERR_CORRUPT);
}

static void
a_base_from_nowhere(void **state)
{
	struct telling *t = *state;

	assert_int_equal(committed(t, 1, 'a', 'b'), ERR_OK);
	assert_int_equal(committed(t, 2, 'f', 'c'), ERR_CORRUPT);
	assert_string_equal(t->why.text, "its base is no model of its job");
}

static void
a_failed_round_moves_nothing(void **state)
{
	struct telling *t = *state;

	assert_int_equal(tell(t, 1, round_body("round.failed", 1, 'a', 'b')), ERR_CORRUPT);
}

static void
entry_and_body_differ(void **state)
{
	struct telling *t = *state;

	assert_int_equal(tell(t, 2, round_body("round.committed", 1, 'a', 'b')), ERR_CORRUPT);
	assert_string_equal(t->why.text, "entry and body name different rounds");
}

static void
facts_are_missing(void **state)
{
	struct telling *t = *state;
	char text[1024];

	snprintf(text, sizeof(text), "%s", round_body("round.committed", 1, 'a', 'b'));
	char *rate = strstr(text, "\"rate\"");
	rate[1] = 'x';
	assert_int_equal(tell(t, 1, text), ERR_CORRUPT);
}

/* --- documents */

static void
another_document(void **state)
{
	static uint8_t text[] = "{}";
	struct telling *t = *state;

	t->details[0] = (struct record_detail){.data = text, .len = 2};
	t->count = 1;
	assert_int_equal(
	    tell(t, 0,
		"{\"event\":\"job.submitted\",\"model\":\"" HASH("a") "\",\"details\":[\"x\"]}"),
	    ERR_CORRUPT);
	assert_string_equal(t->why.text, "the document is not that of the job");
}

/* --- manifests */

static void
joined(struct telling *t, const struct key *key, uint8_t id[32])
{
	static char detail[1024];
	char spki[2 * KEY_SPKI_LEN + 1], hex[65];

	key_id(id, key_spki(key));
	hex_encode(hex, id, 32);
	hex_encode(spki, key_spki(key), KEY_SPKI_LEN);
	snprintf(detail, sizeof(detail), "{\"name\":\"gateway\",\"key\":\"%s\",\"device\":\"%s\"}",
	    spki, hex);
	t->details[0] = (struct record_detail){.data = (uint8_t *)detail, .len = strlen(detail)};
	t->count = 1;
	assert_int_equal(tell(t, 0, "{\"event\":\"device.joined\",\"details\":[\"x\"]}"), ERR_OK);
}

static void
manifest(uint8_t out[MANIFEST_LEN], const uint8_t device[32], const struct key *key)
{
	struct manifest m = {.round = 1,
	    .examples = 100,
	    .steps = 1,
	    .elements = 1,
	    .payload_bytes = 4,
	    .accuracy = NAN};
	uint8_t digest[HASH_LEN];

	memset(m.base, 0xaa, sizeof(m.base));
	memcpy(m.device, device, sizeof(m.device));
	manifest_encode(out, &m);
	hash_sha256(digest, out, MANIFEST_SIGNED);
	assert_int_equal(sign_hash(key, digest, out + MANIFEST_SIGNED), ERR_OK);
}

static enum err
with_manifest(struct telling *t, uint8_t bytes[MANIFEST_LEN], unsigned examples)
{
	char text[1024];

	snprintf(text, sizeof(text), "%s", round_body("round.committed", 1, 'a', 'b'));
	snprintf(strstr(text, "\"reports\""), 200,
	    "\"reports\":1,\"examples\":%u,\"details\":[\"x\"]}", examples);
	t->details[0] = (struct record_detail){.data = bytes, .len = MANIFEST_LEN};
	t->count = 1;
	return tell(t, 1, text);
}

static void
manifests_are_signed(void **state)
{
	struct telling *t = *state;
	uint8_t id[32], bytes[MANIFEST_LEN], found[32];
	struct key *key = NULL, *other = NULL;

	assert_int_equal(key_generate(&key, &t->why), ERR_OK);
	assert_int_equal(key_generate(&other, &t->why), ERR_OK);
	joined(t, key, id);
	manifest(bytes, id, other);
	assert_int_equal(with_manifest(t, bytes, 100), ERR_CORRUPT);
	assert_string_equal(t->why.text, "manifest 0 is not signed by its device");
	cmd_verify_history_deinit(&t->h);
	/* Nobody's key is known: counted, not refused. */
	assert_int_equal(with_manifest(t, bytes, 100), ERR_OK);
	assert_int_equal(t->h.unsigned_manifests, 1);
	cmd_verify_history_deinit(&t->h);
	joined(t, key, id);
	manifest(bytes, id, key);
	assert_int_equal(with_manifest(t, bytes, 99), ERR_CORRUPT);
	assert_string_equal(t->why.text, "it counts other examples than its manifests");
	cmd_verify_history_deinit(&t->h);
	joined(t, key, id);
	assert_int_equal(with_manifest(t, bytes, 100), ERR_OK);
	assert_int_equal(t->h.unsigned_manifests, 0);
	assert_int_equal(cmd_verify_history_device(&t->h, "gateway", found, &t->why), ERR_OK);
	assert_memory_equal(found, id, sizeof(id));
	assert_int_equal(cmd_verify_history_device(&t->h, "gatewa", found, &t->why), ERR_NOTFOUND);
	key_free(key);
	key_free(other);
}

/* Another round's, or another base's. */
static void
a_manifest_of_elsewhere(void **state)
{
	struct telling *t = *state;
	uint8_t id[32] = {1}, bytes[MANIFEST_LEN];
	struct key *key = NULL;

	assert_int_equal(key_generate(&key, &t->why), ERR_OK);
	manifest(bytes, id, key);
	bytes[24] = 2;
	assert_int_equal(with_manifest(t, bytes, 100), ERR_CORRUPT);
	bytes[24] = 1;
	bytes[32] ^= 1;
	cmd_verify_history_deinit(&t->h);
	assert_int_equal(with_manifest(t, bytes, 100), ERR_CORRUPT);
	key_free(key);
}

/* A model's evaluation of round 1 by the device of `key`, whose report says loss 0.5, and then its round. */
static enum err
rated(struct telling *t, const uint8_t id[32], const struct key *key, const char *loss,
    const char *round_loss)
{
	static const char report[] = "{\"evaluate\":{\"examples\":7,\"loss\":0.5}}";
	struct manifest m = {.round = 1,
	    .examples = 7,
	    .flags = MANIFEST_REPORT | (uint32_t)TASK_EVALUATE << MANIFEST_KIND_SHIFT};
	uint8_t bytes[MANIFEST_LEN], digest[HASH_LEN];
	char text[1024];

	memcpy(m.device, id, 32);
	memset(m.base, 0xbb, 32);
	hash_sha256(m.report_hash, report, sizeof(report) - 1);
	manifest_encode(bytes, &m);
	hash_sha256(digest, bytes, MANIFEST_SIGNED);
	assert_int_equal(sign_hash(key, digest, bytes + MANIFEST_SIGNED), ERR_OK);
	t->details[0] = (struct record_detail){.place = 0, .data = bytes, .len = sizeof(bytes)};
	t->details[1] = (struct record_detail){
	    .place = 1, .data = (uint8_t *)(uintptr_t)report, .len = sizeof(report) - 1};
	t->count = 2;
	snprintf(text, sizeof(text),
	    "{\"event\":\"model.evaluated\",\"job\":\"" ID("0") ID("0") ID("0")
		ID("0") "\",\"round\":1,\"model\":\"" HASH("b") "\",\"evaluate\":{\"examples\":7,"
								"\"loss\":%s},\"details\":["
								"\"\",\"\"]}",
	    loss);
	enum err e = tell(t, 1, text);
	t->count = 0;
	if (e)
		return e;
	snprintf(text, sizeof(text), "%s", round_body("round.committed", 1, 'a', 'b'));
	snprintf(text + strlen(text) - 1, sizeof(text) - strlen(text),
	    ",\"evaluate\":{\"examples\":7,\"loss\":%s}}", round_loss);
	return tell(t, 1, text);
}

/* What a program of an evaluator said is signed, and the round's figure is no other. */
static void
a_figure_is_its_evaluators(void **state)
{
	struct telling *t = *state;
	struct key *key = NULL, *other = NULL;
	uint8_t id[32];

	assert_int_equal(key_generate(&key, &t->why), ERR_OK);
	assert_int_equal(key_generate(&other, &t->why), ERR_OK);
	joined(t, key, id);
	assert_int_equal(rated(t, id, other, "0.5", "0.5"), ERR_CORRUPT);
	assert_string_equal(t->why.text, "manifest 0 is not signed by its device");
	cmd_verify_history_deinit(&t->h);
	joined(t, key, id);
	assert_int_equal(rated(t, id, key, "0.25", "0.25"), ERR_CORRUPT);
	assert_string_equal(t->why.text, "the figure is not the one of the report");
	cmd_verify_history_deinit(&t->h);
	joined(t, key, id);
	assert_int_equal(rated(t, id, key, "0.5", "0.25"), ERR_CORRUPT);
	assert_string_equal(t->why.text, "its figure is not the one that its evaluator reported");
	cmd_verify_history_deinit(&t->h);
	joined(t, key, id);
	if (rated(t, id, key, "0.5", "0.5"))
		fail_msg("%s", t->why.text);
	/* A figure of a job of this kind that nobody has signed. */
	assert_non_null(cmd_verify_history_job(&t->h, (uint8_t[16]){0}));
	t->h.jobs[0].by_program = true;
	char text[1024];
	snprintf(text, sizeof(text), "%s", round_body("round.committed", 2, 'b', 'c'));
	snprintf(text + strlen(text) - 1, sizeof(text) - strlen(text),
	    ",\"evaluate\":{\"examples\":7,\"loss\":1}}");
	assert_int_equal(tell(t, 2, text), ERR_CORRUPT);
	assert_string_equal(t->why.text, "it has a figure, and no evaluator's report");
	key_free(key);
	key_free(other);
}

/* A device is found by the name that it has now; an entry of one that the log does not know makes none. */
static void
a_device_has_another_name(void **state)
{
	struct telling *t = *state;
	static const char joined[] =
	    "{\"device\":\"" HASH("d") "\",\"name\":\"old\",\"key\":\"%s\"}",
			  changed[] = "{\"name\":\"new\",\"device\":\"" HASH("d") "\"}",
			  unknown[] = "{\"name\":\"other\",\"device\":\"" HASH("e") "\"}";
	char detail[1024], hex[2 * KEY_SPKI_LEN + 1];
	uint8_t id[32], key[KEY_SPKI_LEN] = {1};

	hex_encode(hex, key, sizeof(key));
	snprintf(detail, sizeof(detail), joined, hex);
	t->count = 1;
	t->details[0] = (struct record_detail){.data = (uint8_t *)detail, .len = strlen(detail)};
	assert_int_equal(tell(t, 0, "{\"event\":\"device.joined\",\"details\":[\"x\"]}"), ERR_OK);
	assert_int_equal(cmd_verify_history_device(&t->h, "old", id, &t->why), ERR_OK);
	snprintf(detail, sizeof(detail), "%s", changed);
	t->details[0].len = strlen(detail);
	assert_int_equal(tell(t, 0, "{\"event\":\"device.changed\",\"details\":[\"x\"]}"), ERR_OK);
	assert_int_equal(cmd_verify_history_device(&t->h, "old", id, &t->why), ERR_NOTFOUND);
	assert_int_equal(cmd_verify_history_device(&t->h, "new", id, &t->why), ERR_OK);
	assert_int_equal(id[0], 0xdd);
	snprintf(detail, sizeof(detail), "%s", unknown);
	t->details[0].len = strlen(detail);
	assert_int_equal(tell(t, 0, "{\"event\":\"device.changed\",\"details\":[\"x\"]}"), ERR_OK);
	assert_int_equal(cmd_verify_history_device(&t->h, "other", id, &t->why), ERR_NOTFOUND);
	assert_int_equal(t->h.device_count, 1);
	assert_int_equal(t->h.devices[0].key_count, 1);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(rounds_follow),
	    WITH(a_guard_goes_back),
	    WITH(going_back_unsaid),
	    WITH(said_and_not_done),
	    WITH(a_guard_follows_its_document),
	    WITH(a_factor_follows_the_reports),
	    WITH(a_plain_job_goes_on),
	    WITH(a_round_is_missing),
	    WITH(a_round_twice),
	    WITH(a_base_from_nowhere),
	    WITH(a_failed_round_moves_nothing),
	    WITH(entry_and_body_differ),
	    WITH(facts_are_missing),
	    WITH(another_document),
	    WITH(manifests_are_signed),
	    WITH(a_manifest_of_elsewhere),
	    WITH(a_figure_is_its_evaluators),
	    WITH(a_device_has_another_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
