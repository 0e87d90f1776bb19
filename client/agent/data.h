#ifndef DATA_H
#define DATA_H
#include "dataset.h"
#include "settings.h"

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
/* Do these examples fit what the job works on? ERR_INVALID says what differs. */
ERR_MUST_USE enum err data_fits(const struct dataset *set, const struct settings_data *from,
    const struct recipe *recipe, struct why *why);
/* How many classes have names here, 0 if nobody names them; copies name i to out if there is one. The owner's list counts, else what the
 * file says of itself. */
size_t data_names(const struct dataset *set, const struct settings_data *from, size_t i,
    char out[RECIPE_NAME_MAX]);
/* Number of names in a comma-separated list; copies name i (trimmed) to out if out is not NULL. */
size_t data_class_names(const char *list, size_t i, char out[RECIPE_NAME_MAX]);

#endif
