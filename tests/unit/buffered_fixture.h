#ifndef BUFFERED_FIXTURE_H
#define BUFFERED_FIXTURE_H
#include "coordinator_fixture.h"
#include "jobs_inside.h"

/* Jobs whose rounds are buffers, through the real store, spool and folder. Deltas are constant, examples 100 each unless said. */
#define BUFFERED(name, round, more) \
	"{\"name\":\"" name \
	"\",\"seed\":3,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\"," \
	"\"out\":2}],\"loss\":\"cross_entropy\"},\"data\":{\"name\":\"d\",\"shape\":[4]," \
	"\"classes\":2,\"validation\":0.1},\"local\":{\"epochs\":1,\"batch\":10,\"optimizer\":{" \
	"\"name\":\"sgd\"," \
	"\"rate\":0.1}},\"round\":{\"mode\":\"buffered\"," round "}" more "}"

static inline void
expect(struct coordinator *c, uint8_t tag, struct task *t, const char *want)
{
	const char *got = ask(c, tag, t);

	if (strcmp(got, want) != 0)
		fail_msg("device %u is told \"%s\", not \"%s\"", tag, got, want);
}

static inline void
send(struct coordinator *c, const struct task *t, uint8_t tag, float value)
{
	const char *refused = deliver(c, t, tag, value, 100);

	if (refused)
		fail_msg("device %u is refused with %s: %s", tag, refused, c->why.text);
}

static inline void
refused(struct coordinator *c, const struct task *t, uint8_t tag, const char *want)
{
	const char *got = deliver(c, t, tag, 1, 100);

	assert_non_null(got);
	assert_string_equal(got, want);
}

/* Devices from first to last give what makes round n. */
static inline void
fill(struct coordinator *c, const uint8_t job[16], uint64_t n, uint8_t first, uint8_t last)
{
	struct task t;

	for (uint8_t tag = first; tag <= last; tag++) {
		expect(c, tag, &t, "");
		assert_int_equal(t.round, n);
		send(c, &t, tag, 1);
	}
	await_rounds(c, job, n);
}

#endif
