#include "population.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "exact.h"
#include "hash.h"
#include "prng.h"

/* What is drawn of a device: each has numbers of its own. */
enum stream { STREAM_SPEED, STREAM_PRESENCE, STREAM_FAILURE, STREAMS };

static int
compare_devices(const void *a, const void *b)
{
	return memcmp(
	    ((const struct fleet_device *)a)->id, ((const struct fleet_device *)b)->id, 32);
}

static void
name_device(struct fleet_device *d, const struct fleet_profile *p)
{
	char name[64];

	if (p->has_id) {
		memcpy(d->id, p->id, sizeof(d->id));
		return;
	}
	int n = snprintf(name, sizeof(name), "simulated device %u", d->number + 1);
	hash_sha256(d->id, name, (size_t)n);
}

static void
fill(struct fleet *f)
{
	uint32_t number = 0;

	for (size_t i = 0; i < f->profiles.count; i++) {
		const struct fleet_profile *p = &f->profiles.items[i];
		f->comes_and_goes |= p->available < 1;
		for (uint64_t k = 0; k < p->count; k++, number++) {
			f->devices[number] =
			    (struct fleet_device){.number = number, .profile = (uint32_t)i};
			name_device(&f->devices[number], p);
		}
	}
	qsort(f->devices, f->count, sizeof(*f->devices), compare_devices);
}

enum err
fleet_init(
    struct fleet *f, struct fleet_profiles *profiles, double sigma, uint64_t seed, struct why *why)
{
	*f = (struct fleet){.profiles = *profiles,
	    .count = (size_t)profiles->devices,
	    .sigma = sigma,
	    .seed = seed};
	*profiles = (struct fleet_profiles){.count = 0};
	f->devices = calloc(f->count, sizeof(*f->devices));
	if (!f->devices)
		return err_set(why, ERR_NOMEM, "no memory for %zu devices", f->count);
	fill(f);
	for (size_t i = 1; i < f->count; i++)
		if (memcmp(f->devices[i - 1].id, f->devices[i].id, 32) == 0)
			return err_set(why, ERR_INVALID, "two devices of the fleet have one id");
	return ERR_OK;
}

void
fleet_deinit(struct fleet *f)
{
	free(f->devices);
	fleet_profiles_deinit(&f->profiles);
	*f = (struct fleet){.count = 0};
}

const struct fleet_profile *
fleet_profile_of(const struct fleet *f, size_t device)
{
	return &f->profiles.items[f->devices[device].profile];
}

size_t
fleet_find(const struct fleet *f, const uint8_t id[32])
{
	size_t at = bytes_place(f->devices, f->count, sizeof(*f->devices), id, 32);

	return at < f->count && memcmp(f->devices[at].id, id, 32) == 0 ? at : SIZE_MAX;
}

/* The nth random numbers of one kind of a device. */
static struct prng
draw(const struct fleet *f, size_t device, enum stream stream, uint64_t nth)
{
	struct prng r;

	prng_seed2(&r, f->seed, (uint64_t)f->devices[device].number * STREAMS + stream);
	if (nth > 0)
		prng_seed2(&r, prng_u64(&r), nth);
	return r;
}

double
fleet_speed(const struct fleet *f, size_t device)
{
	double speed = fleet_profile_of(f, device)->samples_per_s;

	if (f->sigma <= 0 || speed <= 0)
		return speed;
	struct prng r = draw(f, device, STREAM_SPEED, 0);
	return speed * exact_exp(f->sigma * exact_normal(&r));
}

bool
fleet_is_there(const struct fleet *f, size_t device, uint64_t us)
{
	double available = fleet_profile_of(f, device)->available;

	if (available >= 1)
		return true;
	struct prng r = draw(f, device, STREAM_PRESENCE, us / FLEET_PERIOD_US + 1);
	return prng_double(&r) < available;
}

uint64_t
fleet_back(const struct fleet *f, size_t device, uint64_t us)
{
	while (!fleet_is_there(f, device, us))
		us = (us / FLEET_PERIOD_US + 1) * FLEET_PERIOD_US;
	return us;
}

/* At most a thousand years: a sum of times is always a time. */
static uint64_t
microseconds(double seconds)
{
	return seconds < 3.2e10 ? (uint64_t)(seconds * 1e6) : UINT64_C(32000000000000000);
}

static double
take(double amount, double rate)
{
	return rate > 0 ? amount / rate : 0;
}

struct fleet_times
fleet_times(const struct fleet *f, size_t device, const struct fleet_work *w)
{
	const struct fleet_profile *p = fleet_profile_of(f, device);

	return (struct fleet_times){
	    microseconds(p->latency_s + take((double)w->bytes_down, p->down_bytes_per_s)),
	    microseconds(take(w->samples, fleet_speed(f, device))),
	    microseconds(p->latency_s + take((double)w->bytes_up, p->up_bytes_per_s))};
}

bool
fleet_fails(const struct fleet *f, size_t device, uint64_t nth, double *share)
{
	double failure = fleet_profile_of(f, device)->failure;

	if (failure <= 0)
		return false;
	struct prng r = draw(f, device, STREAM_FAILURE, nth + 1);
	bool fails = prng_double(&r) < failure;
	*share = prng_double(&r);
	return fails;
}
