#ifndef RESTORE_H
#define RESTORE_H
#include "backup.h"

/* Copies a backup (b->dir) into a state directory that holds no state, checking every file against MANIFEST.json on the way. keys/
 * of the backup are copied unless state_dir has keys already. The database is copied last, so that after a crash no coordinator can start
 * from the rest. For root, files get the owner of state_dir. ERR_EXISTS if there is state, ERR_NOTFOUND if b->dir is not a whole backup,
 * ERR_CORRUPT if a file differs, ERR_DENIED if the keys are not those of the database; then state_dir is as empty as before. */
ERR_MUST_USE enum err backup_restore_run(struct backup *b, struct why *why);
/* The first file of keys/ that a coordinator needs and that is not in state_dir; NULL if none is missing. */
const char *backup_restore_missing_key(const char *state_dir);

#endif
