/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "buf.h"
#include "evaluation.h"
#include "job.h"

#define MODEL "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define NET "\"layers\":[{\"type\":\"linear\",\"out\":2}],\"loss\":\"cross_entropy\""
#define DATA "\"data\":{\"name\":\"d\",\"shape\":[4],\"classes\":2,\"validation\":0.25}"
#define LOCAL "\"local\":{\"epochs\":3,\"optimizer\":{\"rate\":0.1}}"

static enum err
make(struct buf *out, const char *like, const char *name, uint64_t goal, struct why *why)
{
	struct json *doc = NULL;

	assert_int_equal(json_parse(&doc, like, strlen(like), NULL), ERR_OK);
	const struct cmd_evaluation v = {.like = doc, .model = MODEL, .name = name, .goal = goal};
	buf_init(out, JOB_DOCUMENT_MAX);
	enum err e = cmd_evaluation_document(out, &v, why);
	json_free(doc);
	return e;
}

static void
expect(const char *like, const char *name, uint64_t goal, const char *want)
{
	struct buf out;
	struct job_spec job;
	struct why why = {""};

	assert_int_equal(make(&out, like, name, goal, &why), ERR_OK);
	assert_string_equal(buf_str(&out), want);
	if (job_parse(&job, out.data, out.len, &why))
		fail_msg("%s", why.text);
	assert_true(job.only_evaluates);
	job_deinit(&job);
	buf_deinit(&out);
}

/* What is a matter of rounds that make models goes, whatever it is; how the model is measured stays. */
static void
what_stays(void **state)
{
	(void)state;
	expect("{\"name\":\"mine\",\"seed\":7,\"model\":{" NET ",\"init\":\"" MODEL
	       "\"},\"tensors\":{\"*\":\"train\"},"
	       "\"trainer\":\"own\",\"params\":{\"a\":1}," DATA "," LOCAL
	       ",\"upload\":{\"codec\":\"f16\"},\"download\":{"
	       "\"codec\":\"f16\"},\"round\":{\"goal\":9,\"quorum\":3,\"deadline_s\":5},\"select\":"
	       "{\"percent\":[0,50]},"
	       "\"priority\":-3,\"aggregate\":{\"rule\":{\"name\":\"median\",\"hostile\":1},\"max_"
	       "norm\":3,"
	       "\"max_examples\":500},\"evaluate\":{\"by\":\"devices\",\"deadline_s\":9},\"stop\":{"
	       "\"rounds\":3},"
	       "\"guard\":{\"metric\":\"loss\",\"factor\":2,\"do\":\"stop\"}}",
	    NULL, 0,
	    "{\"name\":\"mine-evaluate-0123456789ab\",\"kind\":\"evaluate\",\"seed\":7,\"model\":"
	    "{" NET ",\"init\":\"" MODEL
	    "\"},\"tensors\":{\"*\":\"train\"},\"trainer\":\"own\",\"params\":{\"a\":1}," DATA
	    "," LOCAL ",\"select\":{\"percent\":[0,50]},\"priority\":-3,\"upload\":{\"codec\":"
	    "\"f16\"},\"evaluate\":{\"by\":\"devices\","
	    "\"deadline_s\":9},\"round\":{\"goal\":9,\"quorum\":3,\"deadline_s\":5},\"aggregate\":{"
	    "\"rule\":{\"name\":"
	    "\"median\",\"hostile\":1},\"max_examples\":500}}");
}

/* Like a job whose coordinator evaluates, for fewer devices, under a name of one's own. */
static void
what_changes(void **state)
{
	(void)state;
	expect(
	    "{\"name\":\"mine\",\"model\":{" NET "}," DATA "," LOCAL
	    ",\"round\":{\"goal\":9,\"quorum\":3,\"grace_s\":2},"
	    "\"evaluate\":{\"by\":\"coordinator\",\"data\":\"test\",\"every\":2,\"deadline_s\":9}}",
	    "other", 2,
	    "{\"name\":\"other\",\"kind\":\"evaluate\",\"model\":{" NET ",\"init\":\"" MODEL
	    "\"}," DATA "," LOCAL ",\"evaluate\":{\"by\":\"devices\"},\"round\":{\"goal\":2,"
	    "\"grace_s\":2},\"aggregate\":{}}");
	/* A long name loses its end, not what tells it apart. */
	expect("{\"name\":\"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk\","
	       "\"model\":{" NET "}," DATA "," LOCAL ",\"round\":{\"goal\":9}}",
	    NULL, 0,
	    "{\"name\":\"abcdefghijklmnopqrstuvwxyzabcdefghijklmno-evaluate-0123456789ab\","
	    "\"kind\":\"evaluate\",\"model\":{" NET ",\"init\":\"" MODEL "\"}," DATA "," LOCAL
	    ",\"evaluate\":{\"by\":\"devices\"},\"round\":{\"goal\":9},\"aggregate\":{}}");
}

static void
no_document(void **state)
{
	static const char *const texts[] = {
	    "{}", "[]", "{\"model\":{}}", "{\"model\":1,\"round\":{}}"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct why why = {""};
		struct buf out;
		assert_int_equal(make(&out, texts[i], NULL, 0, &why), ERR_INVALID);
		assert_string_equal(why.text, "that is no job's document");
		buf_deinit(&out);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_stays),
	    cmocka_unit_test(what_changes),
	    cmocka_unit_test(no_document),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
