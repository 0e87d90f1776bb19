#include "site_offer.h"

#include <stdio.h>

#include "buf.h"
#include "json.h"
#include "program_site.h"
#include "recipe.h"
#include "serve.h"
#include "site.h"
#include "timing.h"

/* What ranks of a site do not. */
static const char *const lacking[] = {"variates", RECIPE_FEATURE_TRAINER_VARIATES, NULL};

int
site_offer_print(const struct site *site)
{
	struct json *offer = serve_offer(lacking);
	struct buf text;

	buf_init(&text, 1u << 16);
	json_add_u64(offer, "memory_bytes", timing_memory(site->ranks, true) * site->ranks);
	enum err e = json_print(&text, offer, false);
	if (!e)
		puts(buf_str(&text));
	buf_deinit(&text);
	json_free(offer);
	return e ? PROGRAM_FAILED : PROGRAM_OK;
}
