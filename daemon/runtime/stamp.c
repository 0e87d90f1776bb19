#include "stamp.h"

#include <sys/stat.h>

enum err
stamp_of(const char *path, struct stamp *out, struct why *why)
{
	struct stat st;

	*out = (struct stamp){.device = 0};
	if (stat(path, &st) != 0)
		return err_errno(why, "%s", path);
	*out = (struct stamp){
	    .device = st.st_dev,
	    .inode = st.st_ino,
	    .bytes = (uint64_t)st.st_size,
	    .written_s = st.st_mtim.tv_sec,
	    .written_ns = st.st_mtim.tv_nsec,
	    .changed_s = st.st_ctim.tv_sec,
	    .changed_ns = st.st_ctim.tv_nsec,
	};
	return ERR_OK;
}

bool
stamp_same(const struct stamp *a, const struct stamp *b)
{
	return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
	    a->written_s == b->written_s && a->written_ns == b->written_ns &&
	    a->changed_s == b->changed_s && a->changed_ns == b->changed_ns;
}
