#include "site_offer.h"

#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "json.h"
#include "net_spec.h"
#include "program_site.h"
#include "recipe.h"
#include "site.h"
#include "timing.h"

/* What ranks of a site do not. */
static const char *const lacking[] = {"variates", RECIPE_FEATURE_TRAINER_VARIATES};

static bool
lacks(const char *feature)
{
	for (size_t i = 0; i < sizeof(lacking) / sizeof(lacking[0]); i++)
		if (strcmp(feature, lacking[i]) == 0)
			return true;
	return false;
}

static struct json *
names(const char *const *list, bool all)
{
	struct json *out = json_array();

	for (; *list; list++)
		if (all || !lacks(*list))
			json_push(out, json_new_string(*list));
	return out;
}

int
site_offer_print(const struct site *site)
{
	static const char *const kinds[] = {"train", "evaluate", NULL};
	struct json *offer = json_object();
	struct buf text;

	buf_init(&text, 1u << 16);
	json_add_u64(offer, "memory_bytes", timing_memory(site->ranks, true) * site->ranks);
	json_add(offer, "kinds", names(kinds, true));
	json_add(offer, "layers", names(net_spec_type_names(), true));
	json_add(offer, "features", names(recipe_feature_names(), false));
	enum err e = json_print(&text, offer, false);
	if (!e)
		puts(buf_str(&text));
	buf_deinit(&text);
	json_free(offer);
	return e ? PROGRAM_FAILED : PROGRAM_OK;
}
