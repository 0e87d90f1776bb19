#ifndef CLASS_FOLDER_H
#define CLASS_FOLDER_H
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "err.h"

/*
 * A folder with one folder per class: its files, in the byte order of their names. Names that begin with a dot are ignored.
 */
#define CLASS_FOLDER_FILES_MAX 10000000u
#define CLASS_FOLDER_LINKS_MAX 65536u

struct class_folder {
	struct buf names; /* of the classes, each ended by a line feed */
	size_t classes;
	struct class_folder_file {
		char *path; /* owned */
		uint32_t class;
	} * files;
	size_t count, room;
	char **links; /* paths of symbolic links, owned: they may lead out of the folder */
	size_t link_count, link_room;
};

/* ERR_INVALID if there are no classes or too many, a class has no files, an entry is neither folder nor file, a symbolic link
 * leads nowhere, or a name has a control character; ERR_LIMIT if there are too many files or links. Blocks on the disk. The caller calls
 * class_folder_deinit in either case. */
ERR_MUST_USE enum err class_folder_list(
    struct class_folder *out, const char *path, struct why *why);
void class_folder_deinit(struct class_folder *f);

#endif
