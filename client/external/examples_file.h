#ifndef EXAMPLES_FILE_H
#define EXAMPLES_FILE_H
#include "settings.h"

/*
 * A device's own examples as a safetensors file, for programs: a shard or a drawn set need not be worked out again in another
 * language. Tensors: "x" [n, shape...] (U8, to be divided by 255, or F32), "y" [n] (I32 class, or F32 targets [n, width]), and for the
 * validation share "validation_x", "validation_y". Not normalised: the recipe says how.
 *
 * It is written once and kept as HOME/examples/ID.safetensors, mode 0400, where ID is the SHA-256 of its bytes: whatever decides them
 * decides the name. Together such files stay within [limits] examples_bytes, and those unused for longest go first.
 */
#define EXAMPLES_FILE_ID 65

struct examples_file {
	const struct dataset *train, *validation; /* validation->count may be 0 */
	const struct settings *settings; /* for examples_bytes */
	bool once; /* no later task has the same: it is not kept */
	const char *home; /* the agent's */
	/* Of these examples, "" while not known: finding it means to hash them all, so keep it as long as they stay. NULL: nobody does. */
	char *id;
};

/* Where it lies; it is written if need be. A set larger than examples_bytes is written to `spare` instead, which path is then. Blocks on
 * the disk. */
ERR_MUST_USE enum err examples_file_find(
    char path[PATH_MAX], const struct examples_file *f, const char *spare, struct why *why);

#endif
