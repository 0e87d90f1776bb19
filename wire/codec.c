#include "codec.h"

#include <string.h>

#include "codec_f32.h"
#include "codec_half.h"
#include "codec_int8.h"
#include "codec_rotated.h"

static const struct codec *const codecs[] = {
    &codec_f32,
    &codec_half_f16,
    &codec_half_bf16,
    &codec_int8,
    &codec_rotated_int4,
    &codec_rotated_sign,
};
#define CODECS (sizeof(codecs) / sizeof(codecs[0]))

const struct codec *
codec_find(unsigned id)
{
	for (size_t i = 0; i < CODECS; i++)
		if (codecs[i]->id == id)
			return codecs[i];
	return NULL;
}

const struct codec *
codec_find_name(const char *name)
{
	for (size_t i = 0; i < CODECS; i++)
		if (strcmp(codecs[i]->name, name) == 0)
			return codecs[i];
	return NULL;
}

const char *const *
codec_names(void)
{
	static const char *const names[CODECS + 1] = {
	    "f32",
	    "f16",
	    "bf16",
	    "int8",
	    "int4",
	    "sign",
	};

	return names;
}
