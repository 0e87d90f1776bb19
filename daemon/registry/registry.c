#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "clock.h"
#include "hex.h"
#include "job.h"
#include "json.h"
#include "registry_inside.h"
#include "states.h"
#include "store.h"

#define REGISTRY_MAX (1u << 24)

static size_t
lower_bound(const struct registry *r, const uint8_t id[32])
{
	size_t from = 0, to = r->count;

	while (from < to) {
		size_t mid = from + (to - from) / 2;
		if (memcmp(r->items[mid]->view.row.id, id, 32) < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

struct device *
registry_device(const struct registry *r, const uint8_t id[32])
{
	size_t at = lower_bound(r, id);

	if (at == r->count || memcmp(r->items[at]->view.row.id, id, 32) != 0)
		return NULL;
	return r->items[at];
}

/* --- keys that are not the first of their device */

static size_t
key_at(const struct registry *r, const uint8_t key[32])
{
	return bytes_place(r->keys, r->key_count, sizeof(*r->keys), key, 32);
}

struct device *
registry_device_of_key(const struct registry *r, const uint8_t key[32])
{
	size_t at = key_at(r, key);

	if (at < r->key_count && memcmp(r->keys[at].key, key, 32) == 0)
		return registry_device(r, r->keys[at].device);
	return registry_device(r, key);
}

static enum err
add_key(struct registry *r, const uint8_t key[32], const uint8_t device[32])
{
	size_t at = key_at(r, key);

	if (memcmp(key, device, 32) == 0 ||
	    (at < r->key_count && memcmp(r->keys[at].key, key, 32) == 0))
		return ERR_OK;
	if (r->key_count == REGISTRY_MAX)
		return ERR_LIMIT;
	struct registry_key *keys = bytes_grow(r->keys, r->key_count, &r->key_room, sizeof(*keys));
	if (!keys)
		return ERR_NOMEM;
	r->keys = keys;
	memmove(&r->keys[at + 1], &r->keys[at], (r->key_count - at) * sizeof(*r->keys));
	memcpy(r->keys[at].key, key, 32);
	memcpy(r->keys[at].device, device, 32);
	r->key_count++;
	return ERR_OK;
}

void
registry_drop_key(struct registry *r, const uint8_t key[32])
{
	pthread_mutex_lock(&r->lock);
	size_t at = key_at(r, key);
	if (at < r->key_count && memcmp(r->keys[at].key, key, 32) == 0) {
		r->key_count--;
		memmove(&r->keys[at], &r->keys[at + 1], (r->key_count - at) * sizeof(*r->keys));
	}
	pthread_mutex_unlock(&r->lock);
}

/* --- rows */

static void
device_free(struct device *d)
{
	if (!d)
		return;
	free(d->labels);
	device_status_free(&d->told);
	free(d);
}

static enum err
parse_labels(struct device *d)
{
	struct json *v = NULL;
	const char *text = d->view.row.labels;

	if (!text[0])
		return ERR_OK;
	if (json_parse(&v, text, strlen(text), NULL) || json_kind(v) != JSON_OBJECT) {
		json_free(v);
		return ERR_CORRUPT;
	}
	size_t n = json_count(v);
	d->labels = calloc(n ? n : 1, sizeof(*d->labels));
	for (size_t i = 0; d->labels && i < n; i++) {
		const struct json *m = json_at(v, i);
		const char *value = json_string(m);
		snprintf(d->labels[i].key, sizeof(d->labels[i].key), "%s", json_key(m));
		snprintf(d->labels[i].value, sizeof(d->labels[i].value), "%s", value ? value : "");
	}
	d->label_count = d->labels ? n : 0;
	json_free(v);
	return d->labels ? ERR_OK : ERR_NOMEM;
}

/* Puts d in the sorted array; an older copy is replaced, but what is known of the device since the start is kept. */
static enum err
insert(struct registry *r, struct device *d)
{
	size_t at = lower_bound(r, d->view.row.id);

	if (at < r->count && memcmp(r->items[at]->view.row.id, d->view.row.id, 32) == 0) {
		struct device *old = r->items[at];
		registry_counts_leave(r, old);
		struct store_device row = d->view.row;
		const bool used = old->view.row.claim == CLAIM_USED;
		d->view = old->view;
		d->view.row = row;
		d->unsaved = old->unsaved;
		d->heard = old->heard;
		d->renewed_ms = old->renewed_ms;
		d->claiming = old->claiming;
		d->waits_ms = old->waits_ms;
		memcpy(d->noted, old->noted, sizeof(d->noted));
		/* The row that says CLAIM_USED may not be written yet. */
		if (used && row.claim == CLAIM_NONE)
			d->view.row.claim = CLAIM_USED;
		d->told = old->told;
		old->told = (struct registry_told){.room = 0};
		if (row.state != DEVICE_ACTIVE) {
			registry_counts_heard(r, d->heard, NAN);
			d->heard = NAN;
			device_status_drop(r, d);
		}
		r->items[at] = d;
		registry_counts_enter(r, d);
		device_free(old);
		return ERR_OK;
	}
	if (r->count == REGISTRY_MAX)
		return ERR_LIMIT;
	struct device **items = bytes_grow(r->items, r->count, &r->room, sizeof(struct device *));
	if (!items)
		return ERR_NOMEM;
	r->items = items;
	memmove(&r->items[at + 1], &r->items[at], (r->count - at) * sizeof(struct device *));
	r->items[at] = d;
	r->count++;
	registry_counts_enter(r, d);
	return ERR_OK;
}

static const struct store_seen nothing_seen = {.last_contact = NAN,
    .refused_at = NAN,
    .aborted_at = NAN,
    .clock_offset = NAN,
    .disk_free = NAN};

enum err
registry_put(struct registry *r, const struct store_device *row)
{
	struct device *d = calloc(1, sizeof(*d));
	uint8_t key[32];

	if (!d)
		return ERR_NOMEM;
	d->view.row = *row;
	d->view.seen = nothing_seen;
	d->heard = NAN;
	memcpy(d->view.seen.device, row->id, 32);
	key_id(key, row->spki);
	enum err e = parse_labels(d);
	if (!e) {
		pthread_mutex_lock(&r->lock);
		e = add_key(r, key, row->id);
		if (!e)
			e = insert(r, d);
		pthread_mutex_unlock(&r->lock);
	}
	if (e)
		device_free(d);
	return e;
}

static enum err
read_row(struct store_db *db, void *arg, struct why *why)
{
	struct store_device *d = arg;
	uint8_t id[32];

	(void)why;
	memcpy(id, d->id, sizeof(id));
	return store_device_get(db, id, d);
}

static void
doubt(struct registry *r, const uint8_t id[32])
{
	pthread_mutex_lock(&r->lock);
	struct device *d = registry_device(r, id);
	if (d)
		d->doubtful = true;
	r->doubts = r->doubts || d;
	pthread_mutex_unlock(&r->lock);
}

enum err
registry_follow(struct registry *r, const uint8_t id[32])
{
	struct store_device *now = malloc(sizeof(*now));
	enum err e = now ? ERR_OK : ERR_NOMEM;

	pthread_mutex_lock(&r->following);
	if (!e) {
		memcpy(now->id, id, sizeof(now->id));
		e = store_read(r->store, read_row, now, NULL);
	}
	if (!e)
		e = registry_put(r, now);
	if (e)
		doubt(r, id);
	pthread_mutex_unlock(&r->following);
	free(now);
	return e;
}

/* id: the next doubtful device from index *at on; false if there is none. */
static bool
next_doubt(struct registry *r, size_t *at, uint8_t id[32])
{
	bool found = false;

	pthread_mutex_lock(&r->lock);
	for (; *at < r->count && !found; ++*at) {
		found = r->items[*at]->doubtful;
		if (found)
			memcpy(id, r->items[*at]->view.row.id, 32);
	}
	pthread_mutex_unlock(&r->lock);
	return found;
}

void
registry_settle(struct registry *r)
{
	uint8_t id[32];
	size_t at = 0;

	pthread_mutex_lock(&r->lock);
	bool doubts = r->doubts;
	r->doubts = false;
	pthread_mutex_unlock(&r->lock);
	while (doubts && next_doubt(r, &at, id))
		if (registry_follow(r, id))
			return; /* it has noted that there are doubts */
}

static enum err
load_one(void *ctx, const struct store_device *row)
{
	return registry_put(ctx, row);
}

static enum err
load_key(void *ctx, const uint8_t key[32], const uint8_t device[32])
{
	return add_key(ctx, key, device);
}

static enum err
load_token(void *ctx, const struct store_token *t)
{
	return registry_put_token(ctx, t);
}

static enum err
load_seen(void *ctx, const struct store_seen *seen)
{
	struct device *d = registry_device(ctx, seen->device);

	if (!d)
		return ERR_OK;
	d->view.seen = *seen;
	/* Older ones would take the place of newer ones; what lies ahead was noted by a wrong clock, or is. */
	const double ago = clock_wall() - seen->last_contact;
	if (ago >= 0 && ago < REGISTRY_SECONDS) {
		d->heard = clock_seconds() - ago;
		registry_counts_heard(ctx, NAN, d->heard);
	}
	return ERR_OK;
}

static enum err
load_all(struct store_db *db, void *arg, struct why *why)
{
	struct registry *r = arg;
	double restored_at = 0;
	/* Keys and devices each in their order, and a device's own key is there already: nothing is put between others. */
	enum err e = store_key_each(db, load_key, r);

	(void)why;
	if (!e)
		e = store_device_each(db, load_one, r);
	if (!e)
		e = store_restored_at(db, &restored_at);
	r->restored = restored_at != 0;
	if (!e)
		e = store_seen_each(db, load_seen, r);
	if (!e)
		e = store_token_each(db, &(uint64_t){0}, load_token, r);
	for (size_t i = 0; !e && i < r->count; i++) {
		struct registry_view *v = &r->items[i]->view;
		e = store_accept_count(db, v->row.id, &v->reports);
	}
	return e;
}

enum err
registry_new(struct registry **out, struct store *store, struct why *why)
{
	struct registry *r = calloc(1, sizeof(*r));

	if (!r)
		return err_set(why, ERR_NOMEM, "no memory");
	r->store = store;
	pthread_mutex_init(&r->following, NULL);
	pthread_mutex_init(&r->lock, NULL);
	enum err e = store_read(store, load_all, r, why);
	if (e) {
		registry_free(r);
		return e;
	}
	*out = r;
	return ERR_OK;
}

void
registry_free(struct registry *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->count; i++)
		device_free(r->items[i]);
	free(r->items);
	free(r->keys);
	free(r->access);
	free(r->owners);
	free(r->places);
	pthread_mutex_destroy(&r->lock);
	pthread_mutex_destroy(&r->following);
	free(r);
}

enum err
registry_get(struct registry *r, const uint8_t id[32], struct registry_view *out)
{
	pthread_mutex_lock(&r->lock);
	const struct device *d = registry_device(r, id);
	if (d)
		*out = d->view;
	pthread_mutex_unlock(&r->lock);
	return d ? ERR_OK : ERR_NOTFOUND;
}

enum err
registry_find(struct registry *r, const char *text, struct registry_view *out)
{
	uint8_t id[32];
	size_t matches = 0;
	bool lives = false; /* who holds the name is meant, and not who held it */

	if (hex_decode(id, sizeof(id), text, strlen(text)))
		return registry_get(r, id, out);
	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->count; i++) {
		const struct registry_view *v = &r->items[i]->view;
		bool holds = v->row.state == DEVICE_ACTIVE || v->row.state == DEVICE_SUSPENDED;
		if (strcmp(v->row.name, text) != 0 || (lives && !holds))
			continue;
		matches = lives == holds ? matches + 1 : 1;
		lives = holds;
		*out = *v;
	}
	pthread_mutex_unlock(&r->lock);
	return matches == 0 ? ERR_NOTFOUND : matches == 1 ? ERR_OK : ERR_EXISTS;
}

enum err
registry_each(struct registry *r, const uint8_t *from,
    enum err (*fn)(void *ctx, const struct registry_view *v), void *ctx)
{
	struct registry_view v;
	enum err e = ERR_OK;

	pthread_mutex_lock(&r->lock);
	size_t i = from ? lower_bound(r, from) : 0;
	pthread_mutex_unlock(&r->lock);
	for (; !e; i++) {
		pthread_mutex_lock(&r->lock);
		bool more = i < r->count;
		if (more)
			v = r->items[i]->view;
		pthread_mutex_unlock(&r->lock);
		if (!more)
			break;
		e = fn(ctx, &v);
	}
	return e;
}

bool
registry_is_active(struct registry *r, const uint8_t id[32])
{
	pthread_mutex_lock(&r->lock);
	const struct device *d = registry_device(r, id);
	bool active = d && !d->doubtful && d->view.row.state == DEVICE_ACTIVE;
	pthread_mutex_unlock(&r->lock);
	return active;
}

static bool
has_label(const struct device *d, const struct job_label *want)
{
	for (size_t i = 0; i < d->label_count; i++)
		if (strcmp(d->labels[i].key, want->key) == 0 &&
		    strcmp(d->labels[i].value, want->value) == 0)
			return true;
	return false;
}

static bool
is_listed(const struct device *d, const struct select_spec *select)
{
	char hex[KEY_ID_HEX];

	hex_encode(hex, d->view.row.id, 32);
	return job_names_device(select, hex, d->view.row.name);
}

bool
registry_matches(struct registry *r, const uint8_t id[32], const struct select_spec *select)
{
	pthread_mutex_lock(&r->lock);
	const struct device *d = registry_device(r, id);
	bool ok = d && is_listed(d, select);
	for (size_t i = 0; ok && i < select->label_count; i++)
		ok = has_label(d, &select->labels[i]);
	pthread_mutex_unlock(&r->lock);
	return ok;
}
