#ifndef DATA_H
#define DATA_H
#include "dataset.h"
#include "settings.h"

/*
 * The device's data sets: what [data NAME] describes, loaded into memory. Files are mapped, and only the examples of this
 * device's shard are kept. Calls block on the disk.
 */

/* ERR_NOTFOUND if a file is missing; ERR_INVALID and the like name the file. The caller deinits *out. */
ERR_MUST_USE enum err data_load(
    struct dataset *out, const struct settings_data *from, struct why *why);
/* Divides a set into a training and a validation part by a permutation from seed; the validation part has
 * floor(share x count) examples, at least one if share > 0 and there are two or more. Both are copies. */
ERR_MUST_USE enum err data_split(struct dataset *train, struct dataset *validation,
    const struct dataset *from, double share, uint64_t seed);
/* Do these examples fit what the job works on? ERR_INVALID says what differs. */
ERR_MUST_USE enum err data_fits(const struct dataset *set, const struct settings_data *from,
    const struct recipe *recipe, struct why *why);
/* Number of names in a comma-separated list; copies name i (trimmed) to out if out is not NULL. */
size_t data_class_names(const char *list, size_t i, char out[RECIPE_NAME_MAX]);

#endif
