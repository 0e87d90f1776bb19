#ifndef EXAMPLES_H
#define EXAMPLES_H
#include "dataset.h"

struct task;

/* Which of a data set's examples a job, and one of its tasks, works on. */

/* Divides a set into a training and a validation part by a permutation from seed; the validation part has
 * floor(share x count) examples, at least one if share > 0 and there are two or more. Of what lies in memory both are copies. */
ERR_MUST_USE enum err examples_split(struct dataset *train, struct dataset *validation,
    const struct dataset *from, double share, uint64_t seed);
/* What a job with windows of tokens works on: puts the text cut into them in the place of *set. 0: as the owner says. */
ERR_MUST_USE enum err examples_cut(struct dataset *set, uint32_t window, struct why *why);

/* What a task works on of a training and a validation share, as allowance.h says: these themselves, or what was drawn of them. */
struct examples_task {
	const struct dataset *train, *validation;
	bool drawn; /* one of them at least: */
	uint64_t all; /* of so many examples */
	struct dataset own_train, own_validation;
};
/* The sets must outlive *out, which the caller ends with examples_task_deinit, also after a failure. Task: kind, recipe, seed, round and
 * max_examples are looked at. ERR_NOMEM. */
ERR_MUST_USE enum err examples_task_init(struct examples_task *out, const struct task *task,
    const uint8_t device[32], const struct dataset *train, const struct dataset *validation);
void examples_task_deinit(struct examples_task *h); /* zeros are legal */

#endif
