#ifndef DATA_H
#define DATA_H
#include "dataset.h"
#include "settings.h"

struct task;

/*
 * The device's data sets: what [data NAME] describes, of which only the examples of this device's shard are kept, in memory or as a
 * list of rows of a mapped file. Calls block on the disk.
 */

/* ERR_NOTFOUND if a file is missing; ERR_INVALID and the like name the file. The caller deinits *out. */
ERR_MUST_USE enum err data_load(
    struct dataset *out, const struct settings_data *from, struct why *why);
/* ERR_DENIED: a trainer that is confined may write where a file of this set lies. By a link in its place it would have the agent read, and
 * hand out, what the trainer itself may not see. */
ERR_MUST_USE enum err data_guard(
    const struct settings *settings, const struct settings_data *from, struct why *why);
/* Divides a set into a training and a validation part by a permutation from seed; the validation part has
 * floor(share x count) examples, at least one if share > 0 and there are two or more. Of what lies in memory both are copies. */
ERR_MUST_USE enum err data_split(struct dataset *train, struct dataset *validation,
    const struct dataset *from, double share, uint64_t seed);
/* What a job with windows of tokens works on: puts the text cut into them in the place of *set. 0: as the owner says. */
ERR_MUST_USE enum err data_cut(struct dataset *set, uint32_t window, struct why *why);
/* Do these examples fit what the job works on? ERR_INVALID says what differs. */
ERR_MUST_USE enum err data_fits(const struct dataset *set, const struct settings_data *from,
    const struct recipe *recipe, struct why *why);
/* How many classes have names here, 0 if nobody names them; copies name i to out if there is one. The owner's list counts, else what the
 * file says of itself. */
size_t data_names(const struct dataset *set, const struct settings_data *from, size_t i,
    char out[RECIPE_NAME_MAX]);
/* Number of names in a comma-separated list; copies name i (trimmed) to out if out is not NULL. */
size_t data_class_names(const char *list, size_t i, char out[RECIPE_NAME_MAX]);

/* What a task works on of a training and a validation share, as allowance.h says: these themselves, or what was drawn of them. */
struct data_hand {
	const struct dataset *train, *validation;
	bool drawn; /* one of them at least: */
	uint64_t all; /* of so many examples */
	struct dataset own_train, own_validation;
};
/* The sets must outlive *out, which the caller ends with data_hand_deinit, also after a failure. Task: kind, recipe, seed, round and
 * max_examples are looked at. ERR_NOMEM. */
ERR_MUST_USE enum err data_hand_init(struct data_hand *out, const struct task *task,
    const uint8_t device[32], const struct dataset *train, const struct dataset *validation);
void data_hand_deinit(struct data_hand *h); /* zeros are legal */

#endif
