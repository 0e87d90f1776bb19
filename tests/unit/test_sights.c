/* stages: gcc openssl address */
/* What is read of the audit log to know whose an entry is. */
#include "audit_rows.h"
#include "store_fixture.h"

#define LONG (STORE_SIGHT_MAX + 1)

struct sights {
	uint64_t count, places[4], lens[4];
};

static enum err
note_sight(void *ctx, const struct store_detail *d)
{
	struct sights *s = ctx;

	s->places[s->count] = d->place;
	s->lens[s->count++] = d->len;
	return ERR_OK;
}

static enum err
put_detail(struct store_db *db, uint64_t seq, uint64_t place, uint8_t device, size_t len)
{
	static uint8_t data[LONG] = "{}";
	struct store_detail d = {.seq = seq, .place = place, .data = data, .len = len};

	memset(d.device, device, sizeof(d.device));
	return store_audit_detail_insert(db, &d);
}

/* The first detail, unless it is long, and what is about the device; nothing else is read. */
static enum err
sights(struct store_db *db, void *arg, struct why *why)
{
	struct store_audit a = {.seq = 1, .body = (char *)(uintptr_t) "{}", .body_len = 2};
	struct sights s = {.count = 0};
	uint8_t device[32];

	(void)arg;
	CHECK(store_audit_insert(db, &a) == ERR_OK);
	CHECK(put_detail(db, 1, 0, 0, 2) == ERR_OK);
	CHECK(put_detail(db, 1, 1, 7, LONG) == ERR_OK);
	CHECK(put_detail(db, 1, 2, 8, 2) == ERR_OK);
	a.seq = 2;
	CHECK(store_audit_insert(db, &a) == ERR_OK);
	CHECK(put_detail(db, 2, 0, 7, LONG) == ERR_OK);
	memset(device, 7, sizeof(device));
	CHECK(store_audit_sight(db, 1, device, note_sight, &s) == ERR_OK);
	CHECK(s.count == 2 && s.places[0] + s.places[1] == 1);
	CHECK(s.lens[s.places[0] == 0 ? 0 : 1] == 2 && s.lens[s.places[0] == 0 ? 1 : 0] == 1);
	s.count = 0;
	CHECK(store_audit_sight(db, 2, device, note_sight, &s) == ERR_OK);
	CHECK(s.count == 1 && s.places[0] == 0 && s.lens[0] == 1);
	memset(device, 9, sizeof(device));
	s.count = 0;
	CHECK(store_audit_sight(db, 1, device, note_sight, &s) == ERR_OK);
	CHECK(s.count == 1 && s.places[0] == 0 && s.lens[0] == 2);
	return ERR_OK;
}

static void
test_sights(void **state)
{
	write_ok(*state, sights, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_STORE(test_sights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
