/* stages: gcc openssl address */
/* Rows of keys that claim to be a device's in a restored state. */
#include "row.h"
#include "states.h"
#include "store_fixture.h"

static enum err
count_claim(void *ctx, const struct store_claim *c)
{
	*(unsigned *)ctx += c->spki[0];
	return ERR_OK;
}

/* What a backup says of its keys is kept for the state that comes of it; what is contested stays so. */
static enum err
claims(struct store_db *db, void *arg, struct why *why)
{
	struct store_device d = device(2), other = device(3), got;
	struct store_claim c = {.spki = {5}, .issued_at = 7};
	unsigned seen = 0;

	(void)arg;
	d.key_at = 100;
	other.claim = CLAIM_CONTESTED;
	CHECK(store_device_put(db, &d) == ERR_OK && store_device_put(db, &other) == ERR_OK);
	memcpy(c.device, d.id, 32);
	CHECK(store_claim_put(db, &c) == ERR_OK && store_claim_put(db, &c) == ERR_OK);
	memcpy(c.device, other.id, 32);
	CHECK(store_claim_put(db, &c) == ERR_OK);
	CHECK(store_claim_use(db, d.id, c.spki) == ERR_OK);
	CHECK(store_device_get(db, d.id, &got) == ERR_OK && got.claim == CLAIM_NONE);
	CHECK(store_claim_use(db, d.id, d.spki) == ERR_OK);
	CHECK(store_device_get(db, d.id, &got) == ERR_OK && got.claim == CLAIM_USED);
	CHECK(got.key_at == 100 && got.restored_key_at == 0);
	CHECK(store_claims_restored(db) == ERR_OK);
	CHECK(store_device_get(db, d.id, &got) == ERR_OK && got.claim == CLAIM_NONE);
	CHECK(got.key_at == 100 && got.restored_key_at == 100);
	CHECK(store_claim_each(db, d.id, count_claim, &seen) == ERR_OK && seen == 0);
	CHECK(store_claim_each(db, other.id, count_claim, &seen) == ERR_OK && seen == 5);
	CHECK(store_keys_dated(db, 300) == ERR_OK);
	CHECK(store_device_get(db, d.id, &got) == ERR_OK && got.key_at == 100);
	CHECK(store_device_get(db, other.id, &got) == ERR_OK && got.key_at == 300);
	CHECK(got.claim == CLAIM_CONTESTED && got.restored_key_at == 0);
	CHECK(store_claim_clear(db, other.id) == ERR_OK);
	CHECK(store_claim_each(db, other.id, count_claim, &seen) == ERR_OK && seen == 5);
	return ERR_OK;
}

static void
test_claims(void **state)
{
	write_ok(*state, claims, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_STORE(test_claims),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
