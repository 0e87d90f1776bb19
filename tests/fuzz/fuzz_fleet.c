/* Tables of simulated devices. What is accepted must be within the limits that the simulation relies on. */

#include <math.h>

#include "fuzz.h"
#include "profile.h"

static void
check(const struct fleet_profile *p)
{
	require(p->name[0] && p->count >= 1 && p->count <= FLEET_DEVICES_MAX);
	require(!p->has_id || p->count == 1);
	require(p->samples_per_s >= 0 && p->samples_per_s <= FLEET_RATE_MAX);
	require(p->up_bytes_per_s >= 0 && p->up_bytes_per_s <= FLEET_RATE_MAX);
	require(p->down_bytes_per_s >= 0 && p->down_bytes_per_s <= FLEET_RATE_MAX);
	require(p->latency_s >= 0 && p->latency_s <= 86400);
	require(p->available >= 0.001 && p->available <= 1);
	require(p->failure >= 0 && p->failure < 1);
	require(p->attack < FLEET_ATTACKS && p->strength >= 0 && isfinite(p->strength));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fleet_profiles p;
	struct why why = {""};
	uint64_t devices = 0;
	enum err e = fleet_profiles_parse(&p, "fuzz.csv", (const char *)data, len, &why);

	require(e == ERR_OK || why.text[0]);
	for (size_t i = 0; !e && i < p.count; i++) {
		check(&p.items[i]);
		devices += p.items[i].count;
	}
	require(e || (p.count > 0 && devices == p.devices && devices <= FLEET_DEVICES_MAX));
	fleet_profiles_deinit(&p);
	return 0;
}
