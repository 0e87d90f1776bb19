#include "pack.h"

#include <stdlib.h>
#include <string.h>

#include "csv.h"
#include "decoder.h"
#include "err.h"
#include "file.h"
#include "packed_file.h"

#define DECODERS_MAX 64
#define PIXELS_MAX 50000000 /* of a picture */
#define MEMORY_MAX ((uint64_t)1 << 30) /* bytes of a decoder */
#define SECONDS_MAX 60 /* for a picture; the machine may have other things to do */

/* --- pictures */

struct pictures {
	const struct pack_pictures *from;
	struct class_folder folder;
	struct decoder decoders[DECODERS_MAX];
	size_t count;
	uint8_t *pixels;
	size_t room;
	uint32_t size[3]; /* of the first: channels, height, width */
	struct packed_file file;
};

static enum err
start_decoders(struct pictures *p, struct why *why)
{
	struct decoder_options o = {.folder = &p->folder,
	    .path = p->from->folder,
	    .step = p->from->decoders < DECODERS_MAX ? p->from->decoders : DECODERS_MAX,
	    .width = p->from->width,
	    .height = p->from->height,
	    .wanted = {.grey = p->from->grey, .alpha = p->from->alpha, .most_pixels = PIXELS_MAX},
	    .memory = MEMORY_MAX,
	    .seconds = SECONDS_MAX};
	enum err e = ERR_OK;

	for (; !e && o.first < o.step; o.first++, p->count++)
		e = decoder_start(&p->decoders[o.first], &o, why);
	return e;
}

static enum err
take_picture(struct pictures *p, size_t i, struct why *why)
{
	const char *path = p->folder.files[i].path;
	uint32_t size[3];
	enum err e =
	    decoder_next(&p->decoders[i % p->count], path, size, &p->pixels, &p->room, why);

	if (e)
		return e;
	if (i == 0)
		memcpy(p->size, size, sizeof(size));
	if (memcmp(p->size, size, sizeof(size)) != 0)
		return err_set(why, ERR_INVALID,
		    "%.120s has %u x %u pixels, the first picture %u x %u: scale them to one size",
		    path, size[1], size[2], p->size[1], p->size[2]);
	return packed_file_put(
	    &p->file, p->pixels, (size_t)size[0] * size[1] * (size_t)size[2], why);
}

static enum err
finish_pictures(struct pictures *p, struct packed *made, uint8_t hash[32], struct why *why)
{
	size_t n = p->folder.count;
	int32_t *labels = malloc(n * sizeof(*labels));

	if (!labels)
		return err_set(why, ERR_NOMEM, "no memory for %zu labels", n);
	for (size_t i = 0; i < n; i++)
		labels[i] = (int32_t)p->folder.files[i].class;
	*made = (struct packed){.array = {.type = DATASET_U8,
				    .dims = 4,
				    .size = {n, p->size[0], p->size[1], p->size[2]}},
	    .classes = (uint32_t)p->folder.classes,
	    .names_bytes = p->folder.names.len};
	enum err e = array_check(&made->array, DATASET_BYTES_MAX, why);
	const struct packed_end end = {.labels = labels, .names = p->folder.names.data};
	if (!e)
		e = packed_file_finish(&p->file, made, &end, hash, why);
	free(labels);
	return e;
}

enum err
pack_pictures(struct packed *made, uint8_t hash[32], const char *out,
    const struct pack_pictures *from, struct why *why)
{
	struct pictures p = {.from = from, .file = {.fd = -1}};
	enum err e = class_folder_list(&p.folder, from->folder, why);

	if (!e)
		e = packed_file_open(&p.file, out, why);
	if (!e)
		e = start_decoders(&p, why);
	for (size_t i = 0; !e && i < p.folder.count; i++)
		e = take_picture(&p, i, why);
	if (!e)
		e = finish_pictures(&p, made, hash, why);
	for (size_t i = 0; i < DECODERS_MAX; i++)
		decoder_stop(&p.decoders[i]);
	packed_file_close(&p.file);
	class_folder_deinit(&p.folder);
	free(p.pixels);
	return e;
}

/* --- tables */

static enum err
put_row(void *context, const float *values, size_t n, struct why *why)
{
	struct packed_file *f = context;
	enum err e = ERR_OK;

	for (size_t i = 0; !e && i < n; i++) {
		uint32_t bits;
		memcpy(&bits, &values[i], sizeof(bits));
		const uint8_t b[4] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16),
		    (uint8_t)(bits >> 24)};
		e = packed_file_put(f, b, sizeof(b), why);
	}
	return e;
}

/* Of the groups' numbers: how many there are. */
static uint32_t
count_groups(const int32_t *groups, size_t n)
{
	uint32_t most = 0;

	for (size_t i = 0; i < n; i++)
		if ((uint32_t)groups[i] + 1 > most)
			most = (uint32_t)groups[i] + 1;
	return most;
}

static enum err
write_table(struct packed_file *f, struct packed *made, uint8_t hash[32],
    const struct file_map *csv, const struct csv_form *how, struct why *why)
{
	struct dataset d = {0};
	int32_t *groups = NULL;
	size_t rows = 0;
	const struct csv_sink sink = {put_row, f};
	enum err e = csv_stream(&d, csv->data, csv->len, how, &sink, why);

	if (!e && how->group && *how->group)
		e = csv_groups(&groups, &rows, csv->data, csv->len, how, why);
	if (!e) {
		*made = (struct packed){
		    .array = {.type = DATASET_F32, .dims = 2, .size = {d.count, d.features}},
		    .classes = d.labels ? (uint32_t)d.classes : 0,
		    .target_width = d.labels ? 0 : 1,
		    .groups = groups ? count_groups(groups, rows) : 0,
		    .names_bytes = d.names ? strlen(d.names) : 0};
		made->array.size[2] = made->array.size[3] = 1;
		e = array_check(&made->array, DATASET_BYTES_MAX, why);
	}
	const struct packed_end end = {
	    .labels = d.labels, .targets = d.targets, .groups = groups, .names = d.names};
	if (!e)
		e = packed_file_finish(f, made, &end, hash, why);
	free(groups);
	dataset_deinit(&d);
	return e;
}

enum err
pack_table(struct packed *made, uint8_t hash[32], const char *out, const char *file,
    const struct csv_form *how, struct why *why)
{
	struct packed_file f = {.fd = -1};
	struct file_map csv = {0};
	struct why inner = {""};
	enum err e = file_map(&csv, file, DATASET_BYTES_MAX, false, why);

	if (e)
		return e;
	e = packed_file_open(&f, out, why);
	if (!e && (e = write_table(&f, made, hash, &csv, how, &inner)))
		err_set(why, e, "%.120s: %.120s", file, inner.text);
	packed_file_close(&f);
	file_unmap(&csv);
	return e;
}

/* --- looking */

enum err
pack_show(struct packed *out, char **names, uint8_t hash[32], const char *file, struct why *why)
{
	struct file_map map = {0};
	struct why inner = {""};
	enum err e = file_map(&map, file, DATASET_BYTES_MAX, false, why);

	if (e)
		return e;
	e = packed_decode(out, map.data, map.len, &inner);
	if (!e)
		e = packed_file_hash(hash, map.data, map.len);
	if (!e && memcmp(hash, map.data + PACKED_HASH_AT, 32) != 0)
		e = err_set(&inner, ERR_CORRUPT, "its bytes have another hash than its head says");
	*names = e
	    ? NULL
	    : strndup((const char *)map.data + packed_names_at(out), (size_t)out->names_bytes);
	if (!e && !*names)
		e = err_set(&inner, ERR_NOMEM, "no memory for the class names");
	file_unmap(&map);
	return e ? err_set(why, e, "%.120s: %.120s", file, inner.text) : ERR_OK;
}
