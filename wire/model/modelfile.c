#include "modelfile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "bytes.h"
#include "hex.h"
#include "json.h"
#include "json_scan.h"
#include "num.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "data sections are used in place");

#define ALIGN 64
#define METADATA "__metadata__"

enum err
modelfile_data_at(const void *prefix, uint64_t file_bytes, uint64_t *data_at, struct why *why)
{
	if (file_bytes < MODELFILE_PREFIX)
		return err_set(why, ERR_INVALID, "the model file is shorter than its prefix");
	struct bytes_reader r = bytes_reader(prefix, MODELFILE_PREFIX);
	uint64_t len = bytes_get_u64(&r);
	if (len > MODELFILE_HEADER_MAX)
		return err_set(why, ERR_LIMIT, "the model file's header is longer than %u bytes",
		    MODELFILE_HEADER_MAX);
	if (len < 2 || len > file_bytes - MODELFILE_PREFIX)
		return err_set(
		    why, ERR_INVALID, "the model file's header does not fit into the file");
	*data_at = MODELFILE_PREFIX + len;
	return ERR_OK;
}

/* Copies an id in hex if it is given; false if it is something else. */
static bool
read_id(char *out, size_t bytes, const struct json *v)
{
	uint8_t id[32];
	const char *text = json_string(v);

	if (!v)
		return true;
	if (!text || !hex_decode(id, bytes, text, strlen(text)))
		return false;
	memcpy(out, text, 2 * bytes + 1);
	return true;
}

/* Any writer may leave strings of its own under our keys: they count only beside "rivulet". */
static enum err
read_metadata(struct modelfile_meta *out, const struct json *metadata, struct why *why)
{
	struct modelfile_meta meta = {0};
	const struct json *round = json_get(metadata, "round");
	const char *version = json_string(json_get(metadata, "rivulet"));

	if (json_kind(metadata) != JSON_OBJECT)
		return err_set(why, ERR_INVALID, "the model file's metadata is no object");
	for (const struct json *v = json_first(metadata); v; v = json_next(v))
		if (!json_string(v))
			return err_set(
			    why, ERR_INVALID, "the model file's metadata is not all strings");
	if (version && strcmp(version, "1") == 0) {
		bool ok = read_id(meta.job, 16, json_get(metadata, "job")) &&
		    read_id(meta.base, 32, json_get(metadata, "base"));
		if (!ok || (round && !num_u64(json_string(round), UINT64_MAX, &meta.round)))
			return err_set(why, ERR_INVALID, "the model file's metadata is malformed");
	}
	*out = meta;
	return ERR_OK;
}

/* A whole number at place i of an array. */
static bool
number_at(const struct json *array, size_t i, uint64_t *out)
{
	return json_u64(json_at(array, i), out);
}

static bool
is_array(const struct json *v)
{
	return v && json_kind(v) == JSON_ARRAY;
}

static bool
read_offsets(const struct json *v, struct tensor *t)
{
	return is_array(v) && json_count(v) == 2 && number_at(v, 0, &t->begin) &&
	    number_at(v, 1, &t->end);
}

/* Past TENSOR_DIMS_MAX only the number of dimensions is wrong enough to matter. */
static bool
read_shape(const struct json *v, struct tensor *t)
{
	size_t n = json_count(v);

	t->dims = n > TENSOR_DIMS_MAX ? TENSOR_DIMS_MAX + 1 : (unsigned)n;
	for (size_t i = 0; i < n && i < TENSOR_DIMS_MAX; i++)
		if (!number_at(v, i, &t->shape[i]))
			return false;
	return is_array(v);
}

/* Errors name the tensor only once tensor_init has found its name fit to print. */
static enum err
read_tensor(struct tensor *out, const struct json *v, size_t place, struct why *why)
{
	const char *type = json_string(json_get(v, "dtype"));
	struct tensor read = {0};

	if (!type || !read_shape(json_get(v, "shape"), &read) ||
	    !read_offsets(json_get(v, "data_offsets"), &read))
		return err_set(why, ERR_INVALID, "tensor %zu of the header is malformed", place);
	if (!tensor_dtype_find(type, &read.dtype))
		return err_set(
		    why, ERR_UNSUPPORTED, "tensor %zu of the header has an unknown type", place);
	enum err e = tensor_init(out, json_key(v), read.dtype, read.shape, read.dims, why);
	if (e)
		return e;
	if (read.end < read.begin || read.end - read.begin != tensor_bytes(out))
		return err_set(why, ERR_INVALID,
		    "tensor \"%s\" has offsets that do not fit its shape", out->name);
	out->begin = read.begin;
	out->end = read.end;
	return ERR_OK;
}

/* By place; empty tensors, which share one, by name. */
static int
by_place(const void *a, const void *b)
{
	const struct tensor *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Sorts the tensors and checks that they cover the data section without gap or overlap. */
static enum err
check_cover(struct tensor_table *t, uint64_t data_bytes, struct why *why)
{
	uint64_t next = 0;

	if (t->count > 0)
		qsort(t->items, t->count, sizeof(*t->items), by_place);
	for (size_t i = 0; i < t->count; i++) {
		if (t->items[i].begin != next)
			return err_set(why, ERR_INVALID,
			    "there is a gap or overlap before tensor \"%s\"", t->items[i].name);
		next = t->items[i].end;
	}
	if (next != data_bytes)
		return err_set(why, ERR_INVALID,
		    "the tensors take %" PRIu64 " bytes and the file holds %" PRIu64, next,
		    data_bytes);
	t->bytes = next;
	return ERR_OK;
}

/* Reads one member of the header: the metadata or a tensor. */
static enum err
read_member(
    struct tensor_table *t, struct modelfile_meta *meta, const struct json *v, struct why *why)
{
	if (strcmp(json_key(v), METADATA) == 0)
		return read_metadata(meta, v, why);
	if (t->count == TENSOR_COUNT_MAX)
		return err_set(
		    why, ERR_LIMIT, "the model file has more than %d tensors", TENSOR_COUNT_MAX);
	enum err e = read_tensor(&t->items[t->count], v, t->count, why);
	if (!e)
		t->count++;
	return e;
}

static enum err
read_table(
    struct tensor_table *t, struct modelfile_meta *meta, const struct json *header, struct why *why)
{
	size_t n = json_count(header);

	t->items = calloc((n < TENSOR_COUNT_MAX ? n : TENSOR_COUNT_MAX) + 1, sizeof(*t->items));
	if (!t->items)
		return err_set(why, ERR_NOMEM, "no memory for the tensor table");
	for (const struct json *v = json_first(header); v; v = json_next(v)) {
		enum err e = read_member(t, meta, v, why);
		if (e)
			return e;
	}
	return ERR_OK;
}

enum err
modelfile_parse(struct tensor_table *table, struct modelfile_meta *meta, const void *head,
    size_t head_len, uint64_t file_bytes, struct why *why)
{
	struct tensor_table t = {0};
	struct modelfile_meta read = {0};
	struct json *header = NULL;
	uint64_t data_at = 0;

	if (head_len < MODELFILE_PREFIX)
		return err_set(why, ERR_INVALID, "the model file is shorter than its prefix");
	enum err e = modelfile_data_at(head, file_bytes, &data_at, why);
	if (e)
		return e;
	if (head_len < data_at)
		return err_set(why, ERR_INVALID, "the model file's header is not complete");
	const char *text = (const char *)head + MODELFILE_PREFIX;
	/* The reference reader takes no white space here. */
	if (text[0] != '{')
		return err_set(why, ERR_INVALID, "the model file's header is not a JSON object");
	if (json_scan_values(text, (size_t)data_at - MODELFILE_PREFIX) > MODELFILE_VALUES_MAX)
		return err_set(why, ERR_LIMIT, "the model file's header has more than %u values",
		    MODELFILE_VALUES_MAX);
	e = json_parse(&header, text, (size_t)data_at - MODELFILE_PREFIX, why);
	if (!e)
		e = read_table(&t, &read, header, why);
	json_free(header);
	if (!e)
		e = check_cover(&t, file_bytes - data_at, why);
	if (!e)
		e = tensor_table_assign(&t, NULL, 0, why);
	if (e) {
		tensor_table_deinit(&t);
		return e;
	}
	if (meta)
		*meta = read;
	*table = t;
	return ERR_OK;
}

static struct json *
metadata_json(const struct modelfile_meta *meta)
{
	struct json *v = json_object();
	char round[24];

	snprintf(round, sizeof(round), "%" PRIu64, meta->round);
	json_add_string(v, "rivulet", "1");
	if (meta->job[0])
		json_add_string(v, "job", meta->job);
	json_add_string(v, "round", round);
	if (meta->base[0])
		json_add_string(v, "base", meta->base);
	return v;
}

static struct json *
tensor_json(const struct tensor *t)
{
	struct json *v = json_object(), *shape = json_array(), *offsets = json_array();

	json_add_string(v, "dtype", tensor_dtype_name(t->dtype));
	for (unsigned i = 0; i < t->dims; i++)
		json_push(shape, json_new_u64(t->shape[i]));
	json_add(v, "shape", shape);
	json_push(offsets, json_new_u64(t->begin));
	json_push(offsets, json_new_u64(t->end));
	json_add(v, "data_offsets", offsets);
	return v;
}

static enum err
header_text(struct buf *out, const struct tensor_table *table, const struct modelfile_meta *meta)
{
	struct json *header = json_object();

	if (meta)
		json_add(header, METADATA, metadata_json(meta));
	for (size_t i = 0; i < table->count; i++)
		json_add(header, table->items[i].name, tensor_json(&table->items[i]));
	enum err e = json_print(out, header, false);
	json_free(header);
	return e;
}

enum err
modelfile_header(
    struct buf *out, const struct tensor_table *table, const struct modelfile_meta *meta)
{
	uint8_t prefix[MODELFILE_PREFIX];
	struct bytes_writer w = bytes_writer(prefix, sizeof(prefix));
	struct buf text;
	void *spaces = NULL;

	buf_init(&text, MODELFILE_HEADER_MAX);
	enum err e = header_text(&text, table, meta);
	if (!e)
		e = buf_extend(
		    &text, ALIGN - 1 - (MODELFILE_PREFIX + text.len + ALIGN - 1) % ALIGN, &spaces);
	if (!e) {
		memset(spaces, ' ', (size_t)(text.data + text.len - (char *)spaces));
		bytes_put_u64(&w, text.len);
		e = buf_append(out, prefix, sizeof(prefix));
	}
	if (!e)
		e = buf_append(out, text.data, text.len);
	buf_deinit(&text);
	return e;
}

void
modelfile_arrange(
    void *to, const struct tensor_table *want, const void *from, const struct tensor_table *have)
{
	for (size_t i = 0; i < want->count; i++) {
		const struct tensor *own = &want->items[i];
		const struct tensor *there = tensor_table_find(have, own->name);
		if (there && own->elements > 0)
			memcpy((char *)to + own->begin, (const char *)from + there->begin,
			    (size_t)(own->end - own->begin));
	}
}
