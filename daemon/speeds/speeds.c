#include "speeds.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "err.h"
#include "row.h"
#include "store.h"

void
speeds_deinit(struct speeds *t)
{
	free(t->devices);
	free(t->tasks);
	throughput_fleet_deinit(&t->fleet);
	*t = (struct speeds){.oldest = 0};
}

/* --- devices */

static size_t
device_at(const struct speeds *t, const uint8_t id[32])
{
	return bytes_place(t->devices, t->device_count, sizeof(*t->devices), id, 32);
}

static struct speeds_device *
find_device(const struct speeds *t, const uint8_t id[32])
{
	size_t at = device_at(t, id);

	return at < t->device_count && memcmp(t->devices[at].id, id, 32) == 0 ? &t->devices[at]
									      : NULL;
}

/* The device's entry, found or made; NULL: no memory. */
static struct speeds_device *
device(struct speeds *t, const uint8_t id[32])
{
	struct speeds_device *have = find_device(t, id);
	size_t at = device_at(t, id);

	if (have)
		return have;
	struct speeds_device *all =
	    bytes_grow(t->devices, t->device_count, &t->device_room, sizeof(*all));
	if (!all)
		return NULL;
	t->devices = all;
	memmove(&all[at + 1], &all[at], (t->device_count++ - at) * sizeof(*all));
	all[at] = (struct speeds_device){.speed = {.count = 0}};
	memcpy(all[at].id, id, 32);
	return &all[at];
}

void
speeds_note(struct speeds *t, const uint8_t id[32], uint64_t steps, double seconds)
{
	struct speeds_device *d = device(t, id);

	enum err e = d ? throughput_fleet_note(&t->fleet, &d->speed, steps, seconds) : ERR_NOMEM;
	(void)e;
}

/* --- tasks */

/* Where the first of the device's tasks of this round or a later one is, or would be. */
static size_t
task_at(const struct speeds *t, const uint8_t id[32], uint64_t round)
{
	size_t at = bytes_place(t->tasks, t->task_count, sizeof(*t->tasks), id, 32);

	/* Among equal ones any may have been found; a device has few. */
	while (at > 0 && memcmp(t->tasks[at - 1].device, id, 32) == 0)
		at--;
	while (at < t->task_count && memcmp(t->tasks[at].device, id, 32) == 0 &&
	    t->tasks[at].round < round)
		at++;
	return at;
}

static struct speeds_task *
find_task(const struct speeds *t, const uint8_t id[32], uint64_t round)
{
	size_t at = task_at(t, id, round);
	bool same = at < t->task_count && memcmp(t->tasks[at].device, id, 32) == 0 &&
	    t->tasks[at].round == round;

	return same ? &t->tasks[at] : NULL;
}

const struct speeds_task *
speeds_find(const struct speeds *t, const uint8_t id[32], uint64_t round)
{
	return find_task(t, id, round);
}

static struct speeds_task *
put_task(struct speeds *t, const struct speeds_task *task)
{
	size_t at = task_at(t, task->device, task->round);

	struct speeds_task *all = bytes_grow(t->tasks, t->task_count, &t->task_room, sizeof(*all));
	if (!all)
		return NULL;
	t->tasks = all;
	memmove(&all[at + 1], &all[at], (t->task_count++ - at) * sizeof(*all));
	all[at] = *task;
	return &all[at];
}

static void
drop_old(struct speeds *t, uint64_t oldest)
{
	size_t kept = 0;

	if (oldest <= t->oldest)
		return;
	t->oldest = oldest;
	for (size_t i = 0; i < t->task_count; i++)
		if (t->tasks[i].round >= oldest)
			t->tasks[kept++] = t->tasks[i];
	t->task_count = kept;
}

/* The steps of a task. A device without a measured speed gets as many as such devices got in this round before the coordinator's start. */
static uint64_t
steps_of(
    struct speeds *t, const struct local_spec *local, const struct speeds_device *d, uint64_t round)
{
	static const struct throughput unknown;
	const struct throughput *speed = d ? &d->speed : &unknown;
	const uint64_t steps = throughput_steps(&t->fleet, round, local, speed);

	return speed->count == 0 && t->newcomers_round == round ? t->newcomers_steps : steps;
}

const struct speeds_task *
speeds_size(struct speeds *t, const struct local_spec *local, const uint8_t id[32], uint64_t round,
    uint64_t oldest)
{
	drop_old(t, oldest);
	const struct speeds_task *have = find_task(t, id, round);
	if (have)
		return have;
	struct speeds_task task = {
	    .round = round, .steps = steps_of(t, local, find_device(t, id), round)};
	memcpy(task.device, id, 32);
	return put_task(t, &task);
}

void
speeds_stored(struct speeds *t, const uint8_t id[32], uint64_t round)
{
	struct speeds_task *task = find_task(t, id, round);

	if (task)
		task->stored = true;
}

void
speeds_forget(struct speeds *t, const uint8_t id[32])
{
	struct speeds_device *d = find_device(t, id);
	size_t kept = 0;

	if (d) {
		throughput_fleet_drop(&t->fleet, &d->speed);
		size_t behind = t->device_count - (size_t)(d - t->devices) - 1;
		memmove(d, d + 1, behind * sizeof(*d));
		t->device_count--;
	}
	for (size_t i = 0; i < t->task_count; i++)
		if (memcmp(t->tasks[i].device, id, 32) != 0)
			t->tasks[kept++] = t->tasks[i];
	t->task_count = kept;
}

/* --- loading */

struct load {
	struct speeds *t;
	const struct store_round *open;
};

static enum err
load_speed(void *ctx, const struct store_speed *row)
{
	const struct load *l = ctx;
	struct speeds_device *d = device(l->t, row->device);

	if (!d)
		return ERR_NOMEM;
	throughput_note(&d->speed, row->steps, row->seconds);
	d->newcomer = d->speed.count == 1 && row->at >= l->open->opened_at;
	return ERR_OK;
}

/* Adds all devices before the fleet is put in order, instead of moving the others for each. */
static enum err
load_fleet(struct speeds *t)
{
	enum err e = ERR_OK;

	for (size_t i = 0; i < t->device_count && !e; i++)
		e = throughput_fleet_add(&t->fleet, &t->devices[i].speed);
	throughput_fleet_order(&t->fleet);
	return e;
}

static enum err
load_task(void *ctx, const struct store_sized *row)
{
	const struct load *l = ctx;
	struct speeds *t = l->t;
	struct speeds_task task = {.round = row->round, .steps = row->steps, .stored = true};
	const struct speeds_device *d = find_device(t, row->device);

	memcpy(task.device, row->device, 32);
	if (row->round == l->open->round && (!d || d->speed.count == 0 || d->newcomer)) {
		t->newcomers_round = row->round;
		t->newcomers_steps = row->steps;
	}
	return put_task(t, &task) ? ERR_OK : ERR_NOMEM;
}

enum err
speeds_load(struct speeds *t, struct store_db *db, const struct store_round *open)
{
	struct load l = {t, open};
	enum err e = store_speed_each(db, open->job, load_speed, &l);

	e = e ? e : load_fleet(t);
	return e ? e : store_sized_each(db, open->job, load_task, &l);
}
