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
/* ERR_DENIED: a trainer in a sandbox may write where a file of this set lies. With a link in the file's place it could make the agent
 * read, and give to the trainer, a file that the trainer itself may not see. */
ERR_MUST_USE enum err data_guard(
    const struct settings *settings, const struct settings_data *from, struct why *why);
/* Do these examples fit what the job works on? ERR_INVALID says what differs. */
ERR_MUST_USE enum err data_fits(const struct dataset *set, const struct settings_data *from,
    const struct recipe *recipe, struct why *why);
/* Returns how many classes have names, 0 if none; copies name i to out if there is one. The names are those of the owner's settings, else
 * those in the set's file. */
size_t data_names(const struct dataset *set, const struct settings_data *from, size_t i,
    char out[RECIPE_NAME_MAX]);

#endif
