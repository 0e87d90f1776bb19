#include "trainer.h"

/* The first that fits does the job: an owner's [trainer builtin] stands before the one that is built in. */
static const struct trainer trainers[] = {
    {"external", trainer_external_fits, trainer_external_run},
    {"builtin", trainer_builtin_fits, trainer_builtin_run},
};

const struct trainer *
trainer_find(const struct settings *settings, const struct recipe *recipe)
{
	for (size_t i = 0; i < sizeof(trainers) / sizeof(*trainers); i++)
		if (trainers[i].fits(settings, recipe))
			return &trainers[i];
	return NULL;
}

void
trainer_out_deinit(struct trainer_out *out)
{
	counts_free(out->counts);
	out->counts = NULL;
	out->report.counts = NULL;
}
