/* stages: gcc clang openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator_fixture.h"

/* Jobs that begin with an uploaded model: PyTorch writes a state_dict in alphabetical order, layers have the order of the network. */

#define FROM(init) \
	"{\"name\":\"x\",\"model\":{\"init\":\"%s\",\"layers\":[{\"type\":\"linear\",\"name\":" \
	"\"fc\"," \
	"\"out\":2}],\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4]," \
	"\"classes\":2},\"local\":{\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}},\"round\":{" \
	"\"goal\":1}}", \
	    init
#define BIAS(type, from, to) \
	"\"fc.bias\":{\"dtype\":\"" type "\",\"shape\":[2],\"data_offsets\":[" #from "," #to "]}"
#define WEIGHT(shape, from, to) \
	"\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[" shape "],\"data_offsets\":[" #from "," #to \
	"]}"
#define ALPHABETICAL "{" BIAS("F32", 0, 8) "," WEIGHT("2,4", 8, 40) "}"

static enum err
put_row(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_model_put(db, arg);
}

/* A model whose values count up from 0, but one if that is to be spoiled, with the row of an uploaded one. */
static struct {
	int at;
	float value;
} spoiled = {-1, 0};

static void
upload(struct coordinator *c, const char *header, uint64_t bytes, char id[65])
{
	struct store_model row = {.bytes = 1};
	uint8_t head[512] = {(uint8_t)strlen(header), (uint8_t)(strlen(header) >> 8)};
	float values[16];

	assert_true(strlen(header) + 8 <= sizeof(head) && bytes <= sizeof(values));
	memcpy(head + 8, header, strlen(header));
	for (int i = 0; i < 16; i++)
		values[i] = i == spoiled.at ? spoiled.value : (float)i;
	assert_int_equal(
	    models_put(c->s.models, head, 8 + strlen(header), values, bytes, row.id, &c->why),
	    ERR_OK);
	assert_int_equal(store_write(c->s.store, put_row, &row, &c->why), ERR_OK);
	hex_encode(id, row.id, 32);
}

static void
in_alphabetical_order(void **state)
{
	static const float want[ELEMENTS] = {2, 3, 4, 5, 6, 7, 8, 9, 0, 1};
	struct coordinator *c = *state;
	char init[65], text[1024];
	float got[ELEMENTS];
	uint8_t id[16], model[32];
	struct task t;

	upload(c, ALPHABETICAL, 40, init);
	snprintf(text, sizeof(text), FROM(init));
	submit(c, text, id);
	assert_string_equal(ask(c, 1, &t), "");
	assert_string_not_equal(t.model, init);
	assert_true(hex_decode(model, 32, t.model, 64));
	read_weights(c, model, got);
	assert_memory_equal(got, want, sizeof(want));
	coordinator_stop(c);
	coordinator_start(c);
	assert_true(job_is(c, id, "running"));
	assert_string_equal(ask(c, 1, &t), "");
	assert_null(deliver(c, &t, 1, 1, 10));
	await_rounds(c, id, 1);
}

/* What needs no rewriting keeps its id. */
static void
in_the_order_of_the_layers(void **state)
{
	struct coordinator *c = *state;
	char init[65], text[1024];
	uint8_t id[16];
	struct task t;

	upload(c, "{" WEIGHT("2,4", 0, 32) "," BIAS("F32", 32, 40) "}", 40, init);
	snprintf(text, sizeof(text), FROM(init));
	submit(c, text, id);
	assert_string_equal(ask(c, 1, &t), "");
	assert_string_equal(t.model, init);
}

/* Where it would be trained or averaged, by the tensor's name; where it is carried unchanged it may be what it likes. */
static void
no_numbers(void **state)
{
	static const struct {
		int at;
		float value;
		const char *why; /* NULL: it is taken */
		const char *roles;
	} rows[] = {
	    {1, NAN, "model.init: tensor \"fc.bias\" holds NaN or infinity, and is to be trained",
		""},
	    {2, INFINITY, "tensor \"fc.weight\" holds NaN", ""},
	    {9, -INFINITY, "tensor \"fc.weight\" holds NaN", ""},
	    {0, NAN, "tensor \"fc.bias\" holds NaN or infinity, and is to be averaged",
		",\"tensors\":{\"fc.bias\":\"average\"}"},
	    {0, NAN, NULL, ",\"tensors\":{\"fc.bias\":\"frozen\"}"},
	    {0, NAN, NULL, ",\"tensors\":{\"fc.bias\":\"local\"}"},
	    {3, 3.4e38f, NULL, ""},
	};
	struct coordinator *c = *state;
	struct engine_trial trial;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char init[65], text[1024];
		uint8_t id[16];
		spoiled.at = rows[i].at;
		spoiled.value = rows[i].value;
		upload(c, ALPHABETICAL, 40, init);
		snprintf(text, sizeof(text), FROM(init));
		snprintf(text + strlen(text) - 1, 200, "%s}", rows[i].roles);
		if (!rows[i].why) {
			submit(c, text, id);
			continue;
		}
		coordinator_refuses(c, text, rows[i].why);
		assert_int_equal(engine_try(c->s.engine,
				     &(struct engine_document){.text = text, .len = strlen(text)},
				     &trial, &c->why),
		    ERR_INVALID);
	}
	spoiled.at = -1;
}

static void
what_does_not_fit_is_named(void **state)
{
	static const struct {
		const char *header;
		uint64_t bytes;
		const char *why;
	} cases[] = {
	    {"{" WEIGHT("2,4", 0, 32) "}", 32, "model.init: tensor \"fc.bias\" is missing"},
	    {"{" BIAS("F32", 0, 8) "," WEIGHT("4,2", 8, 40) "}", 40,
		"tensor \"fc.weight\" is F32 [4, 2], the layers have F32 [2, 4]"},
	    {"{" BIAS("F16", 0, 4) "," WEIGHT("2,4", 4, 36) "}", 36,
		"tensor \"fc.bias\" is F16 [2], the layers have F32 [2]"},
	    {"{" BIAS("F32", 0, 8) "," WEIGHT("2,4", 8,
		 40) ",\"bn.steps\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[40,48]}}",
		48, "tensor \"bn.steps\" is of no layer"},
	    {"{\"module.fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,4],\"data_offsets\":[0,32]}}",
		32, "there is \"module.fc.weight\": save the state_dict of model.module"},
	};
	struct coordinator *c = *state;
	char init[65], text[1024];
	uint8_t id[16];
	bool created;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		upload(c, cases[i].header, cases[i].bytes, init);
		snprintf(text, sizeof(text), FROM(init));
		enum err e = engine_submit(c->s.engine,
		    &(struct engine_document){.text = text, .len = strlen(text)}, id, &created,
		    &c->why);
		if (e != ERR_INVALID || !strstr(c->why.text, cases[i].why))
			fail_msg("%s: %s", cases[i].header, c->why.text);
	}
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(in_alphabetical_order),
	    WITH(in_the_order_of_the_layers),
	    WITH(no_numbers),
	    WITH(what_does_not_fit_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
