#ifndef DECODER_H
#define DECODER_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "class_folder.h"
#include "err.h"
#include "image.h"

/*
 * A process that decodes pictures one after the other: a picture that breaks the decoder ends only this process, and the reason
 * names the picture. The process may read files, and nothing else; its memory and the time for each picture are limited.
 */
struct decoder_options {
	const struct class_folder *folder;
	/* Of the folder: only files in it, and those its links lead to, are read. */
	const char *path;
	size_t first, step; /* the process decodes the files first, first + step, ... */
	uint32_t width, height; /* 0: as the pictures are */
	struct image_wanted wanted;
	uint64_t memory; /* bytes beside those at the start of the process */
	double seconds; /* for each picture */
};

struct decoder {
	pid_t pid; /* 0: none */
	int fd;
	double seconds;
};

/* Starts the process; the options are not used after the call. */
ERR_MUST_USE enum err decoder_start(
    struct decoder *d, const struct decoder_options *options, struct why *why);
/* Ends the process. A zeroed *d is legal. */
void decoder_stop(struct decoder *d);
/* Takes the next picture, `path`, from the process: size, and bytes in *pixels (channel after channel, as by image_fit), a block of *room
 * bytes that is made larger if needed. Reasons name the path. */
ERR_MUST_USE enum err decoder_next(struct decoder *d, const char *path, uint32_t size[3],
    uint8_t **pixels, size_t *room, struct why *why);

#endif
