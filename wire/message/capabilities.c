#include "capabilities.h"
#include "field.h"
#include "json.h"
#include "messages_inside.h"

#include <string.h>

/* Kinds that this build does not know may be there for later ones. */
static void
read_kinds(struct capabilities *out, struct field *o)
{
	struct field_list list;
	struct field item;
	message_name kind;

	field_array(&list, o, "kinds", 1, MESSAGES_LIST_MAX);
	while (field_each(&list, &item)) {
		field_string(&item, NULL, FIELD_NAME, kind, sizeof(kind), NULL);
		out->trains |= task_kind_find(kind) == TASK_TRAIN;
		out->evaluates |= task_kind_find(kind) == TASK_EVALUATE;
	}
}

static void
read_capabilities(void *to, struct field *o)
{
	struct capabilities *out = to;

	read_kinds(out, o);
	out->layer_count = messages_names(out->layers, o, "layers", 1);
	out->feature_count = messages_names(out->features, o, "features", 0);
	out->memory_bytes = field_u64(o, "memory_bytes", 0, JSON_INT_MAX, 0);
	out->threads = field_u64(o, "threads", 0, CAPABILITIES_THREADS_MAX, 0);
}

enum err
capabilities_decode(struct capabilities *out, const char *text, size_t len, struct why *why)
{
	memset(out, 0, sizeof(*out));
	if (len > CAPABILITIES_MAX)
		return err_set(why, ERR_LIMIT, "longer than %u bytes", CAPABILITIES_MAX);
	return messages_decode(
	    &(struct message){out, sizeof(*out), read_capabilities}, text, len, why);
}
