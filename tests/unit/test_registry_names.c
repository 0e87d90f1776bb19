/* stages: gcc openssl address */
/* Names that two devices had under an older version: one is given another. */
#include "names.h"
#include "registry_fixture.h"
#include "store.h"

static enum err
count_renamed(void *ctx, const struct store_device *d)
{
	(void)d;
	++*(size_t *)ctx;
	return ERR_OK;
}

static enum err
settle(struct store_db *db, void *arg, struct why *why)
{
	return names_settle(db, count_renamed, arg, why);
}

static void
wants_name(struct fixture *f, uint8_t tag, const char *name)
{
	struct registry_view v;
	uint8_t id[32];

	memset(id, tag, sizeof(id));
	assert_int_equal(registry_follow(f->r, id), ERR_OK);
	assert_int_equal(registry_get(f->r, id, &v), ERR_OK);
	assert_string_equal(v.row.name, name);
}

/* Who was revoked or has no name is left alone; a long name is cut between characters. */
static void
names_that_were_shared(void **state)
{
	static const char whole[] =
	    "a123456789b123456789c123456789d123456789e123456789f123456789\xe2\x82\xac";
	static const char cut[] = "a123456789b123456789c123456789d123456789e123456789f123456789-2";
	const char *const before[] = {"gw", "gw-3", "gw", "gw", "gw", "", "", whole, whole, "gw"};
	const char *const after[] = {
	    "gw", "gw-3", "gw-2", "gw-4", "gw", "", "", whole, cut, "gw-5"};
	struct fixture *f = *state;
	size_t renamed = 0;

	for (uint8_t i = 0; i < 10; i++) {
		struct store_device d = device(i + 1, before[i]);
		d.state = i == 4 ? DEVICE_REVOKED : i == 2 ? DEVICE_SUSPENDED : DEVICE_ACTIVE;
		assert_int_equal(store_write(f->store, write_device, &d, NULL), ERR_OK);
	}
	assert_int_equal(store_write(f->store, settle, &renamed, NULL), ERR_OK);
	assert_int_equal(renamed, 4);
	for (uint8_t i = 0; i < 10; i++)
		wants_name(f, i + 1, after[i]);
	assert_int_equal(store_write(f->store, settle, &renamed, NULL), ERR_OK);
	assert_int_equal(renamed, 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_REGISTRY(names_that_were_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
