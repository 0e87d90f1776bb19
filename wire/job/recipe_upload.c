#include <math.h>
#include <stdio.h>
#include <string.h>

#include "field.h"
#include "json.h"
#include "recipe.h"
#include "recipe_inside.h"
#include "sparse.h"

#define SHARE_MIN 1e-9
#define SHARE_DEFAULT 0.01

void
recipe_upload_no_codec(struct field *at, const char *key)
{
	char list[128] = "";

	for (const char *const *name = codec_names(); *name; name++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
		    *list ? ", " : "", *name);
	field_fail(at, key, "no such codec; there are %s", list);
}

static void
add_codec(struct upload_spec *u, struct field *at, const char *key)
{
	char *name = u->codecs[u->codec_count];

	field_string(at, key, FIELD_NAME, name, RECIPE_NAME_MAX, key ? "f32" : NULL);
	if (!codec_find_name(name))
		recipe_upload_no_codec(at, key);
	if (recipe_upload_takes(u, name))
		field_fail(at, key, "stands there twice");
	u->codec_count++;
}

static void
read_codecs(struct upload_spec *u, struct field *upload)
{
	struct field_list list;
	struct field item;

	u->codec_count = 0;
	if (json_kind(json_get(upload->value, "codec")) != JSON_ARRAY) {
		add_codec(u, upload, "codec");
		return;
	}
	field_array(&list, upload, "codec", 1, RECIPE_CODECS_MAX);
	while (field_each(&list, &item))
		add_codec(u, &item, NULL);
}

void
recipe_upload_read(struct recipe *out, struct field *doc)
{
	struct field upload = field_object(doc, "upload");
	struct upload_spec *u = &out->upload;

	read_codecs(u, &upload);
	memcpy(out->codec, u->codecs[0], sizeof(out->codec));
	bool sparse = recipe_upload_takes(u, codec_sparse.name);
	u->share = field_double(&upload, "share", SHARE_MIN, 1, SHARE_DEFAULT);
	/* A task names one of the codecs, and keeps what belongs to the others. */
	if (doc->reader->strict && !sparse && field_has(&upload, "share"))
		field_fail(&upload, "share", "belongs to codec sparse");
	u->says_feedback = field_has(&upload, "feedback");
	u->feedback = field_bool(&upload, "feedback", false);
	field_end(&upload);
}

bool
recipe_upload_takes(const struct upload_spec *u, const char *codec)
{
	for (size_t i = 0; i < u->codec_count; i++)
		if (strcmp(u->codecs[i], codec) == 0)
			return true;
	return false;
}

const char *
recipe_upload_choose(
    const struct upload_spec *u, const char (*offered)[RECIPE_NAME_MAX], size_t count)
{
	for (size_t i = 0; i < u->codec_count; i++)
		for (size_t k = 0; k < count; k++)
			if (strcmp(u->codecs[i], offered[k]) == 0)
				return u->codecs[i];
	return NULL;
}

uint64_t
recipe_upload_entries(const struct upload_spec *u, uint64_t elements)
{
	double most = ceil(u->share * (double)elements);

	return most < (double)elements ? (uint64_t)most : elements;
}

uint64_t
recipe_upload_bytes(const struct upload_spec *u, const struct codec *codec, uint64_t elements)
{
	if (codec->id == CODEC_SPARSE)
		return codec_sparse_most(elements, recipe_upload_entries(u, elements));
	return codec->payload_bytes(elements);
}

uint64_t
recipe_upload_most(const struct upload_spec *u, uint64_t elements)
{
	uint64_t most = 0;

	for (size_t i = 0; i < u->codec_count; i++) {
		uint64_t bytes = recipe_upload_bytes(u, codec_find_name(u->codecs[i]), elements);
		most = bytes > most ? bytes : most;
	}
	return most;
}

bool
recipe_upload_feedback(const struct upload_spec *u, const struct codec *codec)
{
	return u->says_feedback ? u->feedback : codec->id == CODEC_SPARSE;
}
