/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "document.h"
#include "hash.h"
#include "hex.h"
#include "json.h"

#define RECIPE(data, rate, codec) \
	"\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\",\"out\":2}],\"loss\":" \
	"\"cross_entropy\"}," \
	"\"data\":{\"name\":\"" data "\",\"shape\":[4],\"classes\":2}," \
	"\"local\":{\"steps\":1,\"batch\":10,\"optimizer\":{\"name\":\"sgd\",\"rate\":" rate "}}," \
	"\"upload\":{\"codec\":" codec "}"
/* As a person writes it: with white space, and a key that this build may not know. */
#define DOCUMENT \
	"{ \"name\": \"mnist-7\",\n\t\"later\": 1, \"round\":{\"goal\":1}, " RECIPE( \
	    "mnist", "0.1", "[\"int8\",\"f32\"]") "}\n"
#define MODEL "\"0000000000000000000000000000000000000000000000000000000000000001\""
#define TASK(recipe) \
	"{\"kind\":\"train\",\"task\":\"00000000000000000000000000000001\"," \
	"\"job\":\"00000000000000000000000000000002\",\"round\":3,\"model\":{\"id\":" MODEL \
	",\"bytes\":100},\"recipe\":{" recipe "},\"seed\":5,\"deadline_s\":60}"

static void
id_of(const char *text, char id[33])
{
	uint8_t digest[HASH_LEN];

	hash_sha256(digest, text, strlen(text));
	hex_encode(id, digest, 16);
}

static struct document
good(void)
{
	struct document d;
	char id[33];

	id_of(DOCUMENT, id);
	assert_int_equal(document_read(&d, id, DOCUMENT, strlen(DOCUMENT), NULL), ERR_OK);
	return d;
}

static struct work
holding(const char *message)
{
	struct work w = {.text = strdup(message)};
	struct why why = {""};

	if (messages_task_decode(&w.task, message, strlen(message), &why))
		fail_msg("%s", why.text);
	return w;
}

static void
the_bytes_are_the_jobs(void **state)
{
	static const char nameless[] = "{" RECIPE("mnist", "0.1", "\"f32\"") "}";
	struct document d = good();
	struct why why = {""};
	char id[33];

	(void)state;
	assert_string_equal(d.name, "mnist-7");
	strcpy(id, d.job);
	document_deinit(&d);
	/* One byte of white space less is another job. */
	assert_int_equal(document_read(&d, id, DOCUMENT, strlen(DOCUMENT) - 1, &why), ERR_CORRUPT);
	assert_null(d.recipe);
	assert_non_null(strstr(why.text, id));
	id[0] = id[0] == 'a' ? 'b' : 'a';
	assert_int_equal(document_read(&d, id, DOCUMENT, strlen(DOCUMENT), &why), ERR_CORRUPT);
	id_of(nameless, id);
	assert_int_equal(document_read(&d, id, nameless, strlen(nameless), &why), ERR_INVALID);
	id_of("{}", id);
	assert_int_not_equal(document_read(&d, id, "{}", 2, &why), ERR_OK);
}

/* Whatever the task says, what is done is what the document says, in the codec that was chosen. */
static void
the_recipe_is_the_documents(void **state)
{
	struct document d = good();
	struct work w = holding(TASK(RECIPE("secrets", "100", "\"f32\"")));
	struct why why = {""};

	(void)state;
	assert_int_equal(document_apply(&d, &w, &why), ERR_OK);
	assert_string_equal(w.task.recipe.data.name, "mnist");
	assert_true(w.task.recipe.local.optimizer.rate == 0.1);
	assert_string_equal(w.task.recipe.codec, "f32");
	assert_int_equal(w.task.recipe.upload.codec_count, 1);
	assert_int_equal(w.task.round, 3);
	assert_int_equal(w.task.seed, 5);
	/* Programs read the message. */
	assert_null(strstr(w.text, "secrets"));
	assert_non_null(strstr(w.text, "mnist"));
	assert_non_null(strstr(w.text, "00000000000000000000000000000002"));
	work_deinit(&w);
	document_deinit(&d);
}

static void
a_codec_of_the_job(void **state)
{
	struct document d = good();
	struct work w = holding(TASK(RECIPE("mnist", "0.1", "\"f16\"")));
	struct why why = {""};

	(void)state;
	assert_int_equal(document_apply(&d, &w, &why), ERR_INVALID);
	assert_non_null(strstr(why.text, "f16"));
	/* Left as it was. */
	assert_string_equal(w.task.recipe.codec, "f16");
	assert_non_null(strstr(w.text, "f16"));
	work_deinit(&w);
	document_deinit(&d);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_bytes_are_the_jobs),
	    cmocka_unit_test(the_recipe_is_the_documents),
	    cmocka_unit_test(a_codec_of_the_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
