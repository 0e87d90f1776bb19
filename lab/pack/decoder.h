#ifndef DECODER_H
#define DECODER_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "class_folder.h"
#include "err.h"
#include "image.h"

/*
 * A process of its own that decodes pictures one after the other: what a picture does to a decoder is that process's end, and the reason
 * names the picture. It may read files, and nothing else; its memory and the time for each picture are limited.
 */
struct decoder_options {
	const struct class_folder *folder;
	const char *
	    path; /* of the folder: nothing is read but what is in it, and what its links lead to */
	size_t first, step; /* it decodes files first, first + step, ... */
	uint32_t width, height; /* 0: as they are */
	struct image_wanted wanted;
	uint64_t memory; /* bytes beside what it begins with */
	double seconds; /* for a picture */
};

struct decoder {
	pid_t pid; /* 0: none */
	int fd;
	double seconds;
};

/* The options must outlive the process's start only. */
ERR_MUST_USE enum err decoder_start(
    struct decoder *d, const struct decoder_options *options, struct why *why);
/* Ends it. Zeros are legal. */
void decoder_stop(struct decoder *d);
/* Its next picture, `path`: its size, and its bytes in *pixels (channel after channel, as of image_fit), which hold *room and are made
 * larger if need be. Reasons name the path. */
ERR_MUST_USE enum err decoder_next(struct decoder *d, const char *path, uint32_t size[3],
    uint8_t **pixels, size_t *room, struct why *why);

#endif
