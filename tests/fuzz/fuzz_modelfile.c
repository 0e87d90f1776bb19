/* A model file. What parses must print a header that parses to the same table. */

#include "buf.h"
#include "fuzz.h"
#include "modelfile.h"

static void
check(const struct tensor_table *t, const struct modelfile_meta *meta)
{
	struct modelfile_meta again_meta;
	struct tensor_table again;
	struct why why;
	struct buf head;

	buf_init(&head, 2 * MODELFILE_HEADER_MAX);
	enum err e = modelfile_header(&head, t, meta);
	if (e == ERR_OK) {
		if (modelfile_parse(
			&again, &again_meta, head.data, head.len, head.len + t->bytes, &why))
			abort();
		if (!tensor_table_same(t, &again) || again.elements != t->elements ||
		    again_meta.round != meta->round)
			abort();
		tensor_table_deinit(&again);
	} else if (e != ERR_LIMIT) {
		abort();
	}
	buf_deinit(&head);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct modelfile_meta meta;
	struct tensor_table t;
	struct why why;
	uint64_t at;

	if (modelfile_parse(&t, &meta, data, len, len, &why))
		return 0;
	if (modelfile_data_at(data, len, &at, &why) || len - at != t.bytes)
		abort();
	check(&t, &meta);
	tensor_table_deinit(&t);
	return 0;
}
