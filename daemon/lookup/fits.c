#include "fits.h"

#include <string.h>

static bool
same(const struct fits_thing *a, const struct fits_thing *b)
{
	return a->id_len == b->id_len && memcmp(a->id, b->id, a->id_len) == 0;
}

/* Of two things of one name and owner, does the name mean a rather than b? Of two of the same age it means one, too: both would take the
 * places of other owners' things. */
static bool
outranks(const struct fits_thing *a, const struct fits_thing *b)
{
	if (a->lives != b->lives)
		return a->lives;
	if (a->lives || !a->ages)
		return false;
	return a->age > b->age || (a->age >= b->age && memcmp(a->id, b->id, sizeof(a->id)) > 0);
}

static void
drop(struct fits *f, size_t i)
{
	if (i == 0)
		f->names[0] = f->names[1];
	f->name_count--;
}

void
fits_name(struct fits *f, const struct fits_thing *t)
{
	for (size_t i = f->name_count; i-- > 0;) {
		bool rival = memcmp(f->names[i].owner, t->owner, sizeof(t->owner)) == 0;
		if (rival && outranks(t, &f->names[i]))
			drop(f, i);
		else if (same(t, &f->names[i]) || (rival && outranks(&f->names[i], t)))
			return;
	}
	if (f->name_count < 2)
		f->names[f->name_count++] = *t;
}

void
fits_id(struct fits *f, const struct fits_thing *t)
{
	for (size_t i = 0; i < f->id_count; i++)
		if (same(t, &f->ids[i]))
			return;
	if (f->id_count < 2)
		f->ids[f->id_count++] = *t;
}

static size_t
add(struct fits_thing out[2], size_t count, const struct fits_thing *t)
{
	for (size_t i = 0; i < count; i++)
		if (same(t, &out[i]))
			return count;
	if (count < 2)
		out[count++] = *t;
	return count;
}

size_t
fits_found(const struct fits *f, struct fits_thing out[2])
{
	size_t count = 0;

	for (size_t i = 0; i < f->name_count; i++)
		count = add(out, count, &f->names[i]);
	for (size_t i = 0; i < f->id_count; i++)
		count = add(out, count, &f->ids[i]);
	return count;
}
