#include "device_status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "registry_inside.h"

#define BATCH 64 /* devices under one lock */

/* A device's status in a job, in a byte: UNKNOWN; 1 + the wait_reason that it was told; GAVE_UP + the abort_reason of its last task. */
enum { UNKNOWN = 0, GAVE_UP = 64 };
_Static_assert((int)WAIT_UNKNOWN < (int)GAVE_UP && (int)GAVE_UP + (int)ABORT_UNKNOWN < 256,
    "a byte holds them all");

static uint8_t
code_of(enum wait_reason why)
{
	return (uint8_t)(1 + why);
}

static bool
is_ready(enum wait_reason why)
{
	return why == WAIT_NONE || why == WAIT_NOT_SELECTED || why == WAIT_REPORTED ||
	    why == WAIT_UNSENT;
}

static uint32_t *
counter(struct device_status *s, uint8_t code)
{
	if (code >= GAVE_UP)
		return &s->gave_up[code - GAVE_UP];
	return is_ready(code - 1) ? &s->ready : &s->waiting[code - 1];
}

static void
move(struct registry *r, struct device *d, uint32_t place, uint8_t code)
{
	struct device_status *s = &r->places[place].counts;
	uint8_t old = d->told.by_place[place];

	if (old != UNKNOWN) {
		--*counter(s, old);
		--*counter(&r->told, old);
	}
	if (code != UNKNOWN) {
		++*counter(s, code);
		++*counter(&r->told, code);
	}
	d->told.by_place[place] = code;
}

/* --- places */

static bool
grow_places(struct registry *r)
{
	uint32_t room = r->place_room ? r->place_room * 2 : 16;

	if (r->place_room >= DEVICE_STATUS_PLACES)
		return false;
	struct registry_place *places = realloc(r->places, room * sizeof(*places));
	if (!places)
		return false;
	memset(&places[r->place_room], 0, (room - r->place_room) * sizeof(*places));
	r->places = places;
	r->place_room = room;
	return true;
}

uint32_t
device_status_open(struct registry *r)
{
	uint32_t place = DEVICE_STATUS_NO_PLACE;

	pthread_mutex_lock(&r->lock);
	while (r->place_free < r->place_room && r->places[r->place_free].used)
		r->place_free++;
	if (r->place_free < r->place_room || grow_places(r)) {
		place = r->place_free++;
		r->places[place].used = true;
	}
	pthread_mutex_unlock(&r->lock);
	return place;
}

void
device_status_close(struct registry *r, uint32_t place)
{
	if (place == DEVICE_STATUS_NO_PLACE)
		return;
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->count; i++)
		if (place < r->items[i]->told.room && r->items[i]->told.by_place[place] != UNKNOWN)
			move(r, r->items[i], place, UNKNOWN);
	r->places[place] = (struct registry_place){.used = false};
	if (place < r->place_free)
		r->place_free = place;
	r->closings++;
	pthread_mutex_unlock(&r->lock);
}

struct device_status
device_status_get(struct registry *r, uint32_t place)
{
	struct device_status s = {.ready = 0};

	if (place == DEVICE_STATUS_NO_PLACE)
		return s;
	pthread_mutex_lock(&r->lock);
	s = r->places[place].counts;
	pthread_mutex_unlock(&r->lock);
	return s;
}

/* --- what devices are told */

void
device_status_begin(struct registry *r, struct device_status_ask *a)
{
	a->count = 0;
	pthread_mutex_lock(&r->lock);
	a->closings = r->closings;
	pthread_mutex_unlock(&r->lock);
}

void
device_status_say(struct device_status_ask *a, uint32_t place, enum wait_reason why)
{
	if (place == DEVICE_STATUS_NO_PLACE)
		return;
	for (; a->count <= place; a->count++)
		a->said[a->count] = UNKNOWN;
	a->said[place] = code_of(why);
}

static bool
make_room(struct device *d, uint32_t count)
{
	struct registry_told *t = &d->told;

	if (count <= t->room)
		return true;
	uint32_t room = count < 16 ? 16 : count + count / 4;
	uint8_t *items = realloc(t->by_place, room);
	if (!items)
		return false;
	memset(items + t->room, UNKNOWN, room - t->room);
	t->by_place = items;
	t->room = room;
	return true;
}

/* Does `said` change the status `old`? A device that gave up stays so when it is told to wait for that, or gets a task again. */
static bool
is_news(uint8_t old, uint8_t said)
{
	if (said == UNKNOWN || said == old)
		return false;
	enum wait_reason why = said - 1;
	return old < GAVE_UP ||
	    (why != WAIT_ABORTED && why != WAIT_RESTING &&
		(!is_ready(why) || why == WAIT_REPORTED));
}

/* The device, or NULL if it may not work. Lock held. */
static struct device *
active(const struct registry *r, const uint8_t id[32])
{
	struct device *d = registry_device(r, id);

	return d && !d->doubtful && d->view.row.state == DEVICE_ACTIVE ? d : NULL;
}

void
device_status_tell(
    struct registry *r, const uint8_t device[32], const struct device_status_ask *a, double seconds)
{
	uint64_t given = clock_ms() + (uint64_t)(seconds * 1000);

	pthread_mutex_lock(&r->lock);
	struct device *d = active(r, device);
	if (d) {
		d->told.until_ms = given + (uint64_t)REGISTRY_SEEN_SECONDS * 1000;
		d->told.silent_ms = given + (uint64_t)REGISTRY_SILENT_SECONDS * 1000;
	}
	/* If a job has ended meanwhile, another may have its place: then nothing is noted until the device asks again. */
	bool tell = d && a->closings == r->closings && make_room(d, a->count);
	for (uint32_t i = 0; tell && i < a->count; i++)
		if (is_news(d->told.by_place[i], a->said[i]))
			move(r, d, i, a->said[i]);
	pthread_mutex_unlock(&r->lock);
}

static void
set(struct registry *r, const uint8_t device[32], uint32_t place, uint8_t code)
{
	if (place == DEVICE_STATUS_NO_PLACE)
		return;
	pthread_mutex_lock(&r->lock);
	struct device *d = active(r, device);
	if (d && make_room(d, place + 1))
		move(r, d, place, code);
	pthread_mutex_unlock(&r->lock);
}

void
device_status_gave_up(
    struct registry *r, const uint8_t device[32], uint32_t place, enum abort_reason reason)
{
	set(r, device, place, (uint8_t)(GAVE_UP + reason));
}

void
device_status_reported(struct registry *r, const uint8_t device[32], uint32_t place)
{
	set(r, device, place, code_of(WAIT_REPORTED));
}

#define TRAINERS_NOTED 8 /* for the hints at a submission */

/* --- what devices have */

/* Makes room for `count` items of `size` bytes; without memory nothing is known of the device any more. */
static void
room_for(void **items, size_t *have, size_t count, size_t size)
{
	void *grown = count > *have ? realloc(*items, count * size) : *items;

	*have = grown ? count : 0;
	if (grown)
		*items = grown;
}

static bool
has_name(const message_name *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

void
device_status_note_data(struct device *d, const struct offer *offer)
{
	struct registry_told *t = &d->told;
	void *data = t->data, *trainers = t->trainers;
	/* A device with an evaluation program trains nothing, and its names are those of evaluators. */
	t->by_program =
	    has_name(offer->features, offer->feature_count, RECIPE_FEATURE_EVALUATE_PROGRAM);
	const message_name *names = t->by_program ? offer->evaluators : offer->trainers;
	const size_t count = t->by_program ? offer->evaluator_count : offer->trainer_count;

	t->memory_bytes = offer->memory_bytes;
	t->draws = has_name(offer->features, offer->feature_count, RECIPE_FEATURE_MAX_EXAMPLES);
	t->no_figures = 0;
	room_for(&data, &t->data_count, offer->data_count, sizeof(*t->data));
	room_for(&trainers, &t->trainer_count, count < TRAINERS_NOTED ? count : TRAINERS_NOTED,
	    sizeof(*t->trainers));
	t->data = data;
	t->trainers = trainers;
	for (size_t i = 0; i < t->data_count; i++) {
		memcpy(t->data[i].name, offer->data[i].name, sizeof(t->data[i].name));
		t->data[i].examples = offer->data[i].examples;
		t->data[i].tokens = offer->data[i].tokens;
	}
	for (size_t i = 0; i < t->trainer_count; i++)
		memcpy(t->trainers[i], names[i], sizeof(t->trainers[i]));
	for (size_t i = 0; i < t->trainer_count && offer->says_figures; i++)
		if (!messages_offer_gives_figures(offer, t->trainers[i]))
			t->no_figures |= (uint64_t)1 << i;
}

/* Lock held. */
static void
look_up(const struct registry_told *t, const struct device_status_ask_for *what,
    struct device_status_offer *out)
{
	out->memory_bytes = t->memory_bytes;
	for (size_t i = 0; i < t->data_count && !out->has_data; i++)
		if (strcmp(t->data[i].name, what->data) == 0) {
			out->has_data = true;
			out->examples = t->data[i].examples;
			out->tokens = t->data[i].tokens;
		}
	out->draws = t->draws;
	for (size_t i = 0; i < t->trainer_count && !out->has_trainer && !out->evaluates; i++)
		if (strcmp(t->trainers[i], what->trainer) == 0) {
			out->has_trainer = !t->by_program;
			out->evaluates = t->by_program;
			out->lacks_figures = t->no_figures >> i & 1;
		}
}

bool
device_status_heard(struct registry *r, const uint8_t device[32],
    const struct device_status_ask_for *what, struct device_status_offer *out)
{
	uint64_t now = clock_ms();

	*out = (struct device_status_offer){.has_data = false};
	pthread_mutex_lock(&r->lock);
	const struct device *d = active(r, device);
	bool heard = d && d->told.until_ms >= now;
	if (heard) {
		look_up(&d->told, what, out);
		out->lately = d->told.silent_ms >= now;
	}
	pthread_mutex_unlock(&r->lock);
	return heard;
}

/* --- who is silent */

static void
drop_places(struct registry *r, struct device *d)
{
	for (uint32_t i = 0; i < d->told.room; i++)
		if (d->told.by_place[i] != UNKNOWN)
			move(r, d, i, UNKNOWN);
	d->told.silent_ms = 0;
}

void
device_status_drop(struct registry *r, struct device *d)
{
	drop_places(r, d);
	d->told.until_ms = 0;
}

void
device_status_note_there(struct device *d)
{
	uint64_t least = clock_ms() + (uint64_t)REGISTRY_SILENT_SECONDS * 1000;

	if (d->told.silent_ms > 0 && d->told.silent_ms < least)
		d->told.silent_ms = least;
}

void
device_status_free(struct registry_told *t)
{
	free(t->by_place);
	free(t->data);
	free(t->trainers);
	*t = (struct registry_told){.room = 0};
}

static void
sweep_device(struct registry *r, struct device *d, uint64_t now)
{
	if (d->told.silent_ms && d->told.silent_ms < now)
		drop_places(r, d);
	if (d->told.until_ms && d->told.until_ms < now)
		device_status_drop(r, d);
}

void
device_status_sweep(struct registry *r)
{
	uint64_t now = clock_ms();
	bool more = true;

	for (size_t at = 0; more; at += BATCH) {
		pthread_mutex_lock(&r->lock);
		for (size_t i = at; i < r->count && i < at + BATCH; i++)
			sweep_device(r, r->items[i], now);
		more = at + BATCH < r->count;
		pthread_mutex_unlock(&r->lock);
	}
}
