/* A change of a job's terms that is taken is written as text that says the same, and what a job is then run by is within its document's
 * bounds. */
#include "buf.h"
#include "fuzz.h"
#include "job.h"
#include "json.h"
#include "override.h"

/* Of two documents: rounds of ten reports, and a buffer. */
static void
check_terms(const struct override_set *change)
{
	for (int buffered = 0; buffered < 2; buffered++) {
		struct job_spec job = {.share = 1,
		    .round = {.goal = 10, .quorum = 8, .deadline_s = 60, .concurrency = 20}};
		struct override_set set = {.state = {OVERRIDE_ABSENT}};
		struct job_terms terms;
		job.round.mode = buffered ? ROUND_MODE_BUFFERED : ROUND_MODE_SYNCHRONOUS;
		if (override_check(change, &job, NULL))
			continue;
		override_merge(&set, change);
		require(override_check(&set, &job, NULL) == ERR_OK);
		override_terms(&terms, &job, &set);
		require(terms.round.goal >= 1 && terms.round.goal <= job.round.goal);
		require(terms.round.quorum >= 1 && terms.round.quorum <= terms.round.goal);
		require(terms.share >= 1);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct override_set first, second;
	struct buf text;

	if (override_parse(&first, (const char *)data, len, NULL))
		return 0;
	buf_init(&text, OVERRIDE_TEXT_MAX);
	struct json *v = override_json(&first);
	if (json_print(&text, v, false) ||
	    override_parse(&second, buf_str(&text), text.len, NULL) ||
	    memcmp(first.state, second.state, sizeof(first.state)) != 0)
		abort();
	for (enum override_key key = 0; key < OVERRIDE_KEYS; key++)
		if (first.value[key] < second.value[key] || first.value[key] > second.value[key])
			abort();
	check_terms(&first);
	json_free(v);
	buf_deinit(&text);
	return 0;
}
