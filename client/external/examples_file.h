#ifndef EXAMPLES_FILE_H
#define EXAMPLES_FILE_H
#include "settings.h"

/*
 * A device's own examples as a safetensors file, for programs: a shard or a drawn set need not be computed again in another
 * language. Tensors: "x" [n, shape...] (U8, to be divided by 255, or F32), "y" [n] (I32 class, or F32 targets [n, width]), and for the
 * validation share "validation_x", "validation_y". Not normalised: the recipe says how.
 *
 * The file is written once and kept as HOME/examples/ID.safetensors, mode 0400, where ID is the SHA-256 of its bytes, so that other
 * examples have another name. All such files together stay within [limits] examples_bytes; those unused for longest are removed first.
 */
#define EXAMPLES_FILE_ID 65

struct examples_file {
	const struct dataset *train, *validation; /* validation->count may be 0 */
	const struct settings *settings; /* for examples_bytes */
	bool once; /* no later task has the same examples: the file is not kept */
	const char *home; /* the agent's */
	/* EXAMPLES_FILE_ID bytes that keep the ID as long as the examples stay the same, "" while not known: to find the ID all examples
	 * are hashed. NULL: the ID is not kept. */
	char *id;
};

/* path: the file of the examples, which is written if it is not there. Examples larger than examples_bytes are written to `spare` instead,
 * which path then is. Blocks on the disk. */
ERR_MUST_USE enum err examples_file_find(
    char path[PATH_MAX], const struct examples_file *f, const char *spare, struct why *why);

#endif
