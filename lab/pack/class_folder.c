#include "class_folder.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes.h"
#include "net_spec.h"
#include "packed.h"
#include "shown.h"

void
class_folder_deinit(struct class_folder *f)
{
	for (size_t i = 0; i < f->count; i++)
		free(f->files[i].path);
	free(f->files);
	for (size_t i = 0; i < f->link_count; i++)
		free(f->links[i]);
	free(f->links);
	buf_deinit(&f->names);
	*f = (struct class_folder){.count = 0};
}

static int
visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* Not alphasort, which asks the locale. */
static int
by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static bool
has_control(const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name < ' ' || *name == 0x7f)
			return true;
	return false;
}

/* Calls `each` for every entry. */
static enum err
walk(struct class_folder *f, const char *path,
    enum err (*each)(struct class_folder *f, const char *path, const char *name, struct why *why),
    struct why *why)
{
	struct dirent **entries = NULL;
	char full[PATH_MAX];
	int n = scandir(path, &entries, visible, by_bytes);
	enum err e = n < 0 ? err_errno(why, "read %s", path) : ERR_OK;

	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		int len = snprintf(full, sizeof(full), "%s/%s", path, name);
		if (!e && (len < 0 || (size_t)len >= sizeof(full)))
			e = err_set(why, ERR_LIMIT, "%.200s: the path is too long", path);
		if (!e && has_control(name))
			e = err_set(
			    why, ERR_INVALID, "%.200s: a name in it has a control character", path);
		if (!e)
			e = each(f, full, name, why);
		free(entries[i]);
	}
	free(entries);
	return e;
}

static enum err
no_memory(struct why *why)
{
	return err_set(why, ERR_NOMEM, "no memory for the names of files");
}

static enum err
add_link(struct class_folder *f, const char *path, struct why *why)
{
	if (f->link_count == CLASS_FOLDER_LINKS_MAX)
		return err_set(why, ERR_LIMIT,
		    "%.200s: more than %u symbolic links: put the pictures themselves there", path,
		    CLASS_FOLDER_LINKS_MAX);
	void *grown = bytes_grow(f->links, f->link_count, &f->link_room, sizeof(*f->links));
	char *copy = grown ? strdup(path) : NULL;
	if (grown)
		f->links = grown;
	if (!copy)
		return no_memory(why);
	f->links[f->link_count++] = copy;
	return ERR_OK;
}

/* What stands at `path`, behind a link if it is one. */
static enum err
look(struct class_folder *f, const char *path, struct stat *st, struct why *why)
{
	char to[PATH_MAX];
	ssize_t n = readlink(path, to, sizeof(to) - 1);
	enum err e = n < 0 ? ERR_OK : add_link(f, path, why);

	if (e)
		return e;
	to[n < 0 ? 0 : n] = '\0';
	if (stat(path, st) == 0)
		return ERR_OK;
	if (n >= 0 && errno == ENOENT)
		return err_set(why, ERR_INVALID,
		    "%.160s: a symbolic link to %.60s, which is not there", path, to);
	if (n >= 0)
		return err_set(why, ERR_INVALID, "%.160s: a symbolic link to %.60s: %s", path, to,
		    strerror(errno));
	return err_errno(why, "look at %s", path);
}

static enum err
add_file(struct class_folder *f, const char *path, const char *name, struct why *why)
{
	struct stat st;

	(void)name;
	enum err e = look(f, path, &st, why);
	if (e)
		return e;
	if (!S_ISREG(st.st_mode))
		return err_set(why, ERR_INVALID, "%.200s is not a regular file", path);
	if (f->count == CLASS_FOLDER_FILES_MAX)
		return err_set(why, ERR_LIMIT, "more than %u files", CLASS_FOLDER_FILES_MAX);
	void *grown = bytes_grow(f->files, f->count, &f->room, sizeof(*f->files));
	char *copy = grown ? strdup(path) : NULL;
	if (grown)
		f->files = grown;
	if (!copy)
		return no_memory(why);
	f->files[f->count++] =
	    (struct class_folder_file){.path = copy, .class = (uint32_t)(f->classes - 1)};
	return ERR_OK;
}

static enum err
add_class(struct class_folder *f, const char *path, const char *name, struct why *why)
{
	size_t before = f->count;
	struct stat st;

	enum err e = look(f, path, &st, why);
	if (e)
		return e;
	if (!S_ISDIR(st.st_mode))
		return err_set(
		    why, ERR_INVALID, "%.200s: only folders, one per class, may be here", path);
	/* Before hours of decoding: a name with a newline would be two. */
	if (strlen(name) > PACKED_NAME_MAX || !shown_is(name))
		return err_set(why, ERR_INVALID,
		    "%.200s: a class's name has 1 to %d bytes, all of which can be shown", path,
		    PACKED_NAME_MAX);
	if (f->classes == RECIPE_CLASSES_MAX || buf_printf(&f->names, "%s\n", name))
		return err_set(why, ERR_LIMIT, "more than %d classes", RECIPE_CLASSES_MAX);
	f->classes++;
	e = walk(f, path, add_file, why);
	if (!e && f->count == before)
		e = err_set(why, ERR_INVALID, "%.200s: the class has no pictures", path);
	return e;
}

enum err
class_folder_list(struct class_folder *out, const char *path, struct why *why)
{
	*out = (struct class_folder){.count = 0};
	buf_init(&out->names, PACKED_NAMES_MAX);
	enum err e = walk(out, path, add_class, why);
	if (!e && out->count == 0)
		e = err_set(why, ERR_INVALID, "%.200s: there is no folder with pictures", path);
	return e;
}
