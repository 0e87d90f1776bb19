#include "after_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "identity.h"

static enum err
take_tensors(
    struct work *w, const struct tensor_table *after, int fd, uint64_t data_at, struct why *why)
{
	for (size_t i = 0; i < w->table.count; i++) {
		const struct tensor *want = &w->table.items[i];
		if (!want->in_delta && want->role != TENSOR_LOCAL)
			continue;
		const struct tensor *have = tensor_table_find(after, want->name);
		if (!have)
			return err_set(why, ERR_INVALID,
			    "after.safetensors has no tensor \"%.100s\"", want->name);
		if (have->dtype != want->dtype || have->dims != want->dims ||
		    memcmp(have->shape, want->shape, want->dims * sizeof(want->shape[0])) != 0)
			return err_set(why, ERR_INVALID,
			    "after.safetensors: \"%.100s\" has another type or shape than in the "
			    "base",
			    want->name);
		if (file_pread(fd, w->weights + want->begin, (size_t)(want->end - want->begin),
			data_at + have->begin))
			return err_set(why, ERR_IO, "after.safetensors cannot be read");
	}
	return ERR_OK;
}

static enum err
parse_head(int fd, struct tensor_table *after, uint64_t *data_at, struct why *why)
{
	uint8_t prefix[MODELFILE_PREFIX];
	struct stat st;

	if (fstat(fd, &st) != 0 || file_pread(fd, prefix, sizeof(prefix), 0))
		return err_set(why, ERR_INVALID, "after.safetensors is too short");
	enum err e = modelfile_data_at(prefix, (uint64_t)st.st_size, data_at, why);
	if (e)
		return e;
	char *head = malloc((size_t)*data_at);
	if (!head)
		return err_set(why, ERR_NOMEM, "no memory for a model's head");
	e = file_pread(fd, head, (size_t)*data_at, 0);
	if (!e)
		e = modelfile_parse(after, NULL, head, (size_t)*data_at, (uint64_t)st.st_size, why);
	free(head);
	return e;
}

enum err
after_file_take(struct work *w, const char *directory, struct why *why)
{
	char path[PATH_MAX];
	struct tensor_table after = {.items = NULL};
	uint64_t data_at = 0;
	enum err e = identity_path(path, directory, "after.safetensors", why);

	if (e)
		return e;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(why, ERR_NOTFOUND, "the trainer left no after.safetensors");
	e = parse_head(fd, &after, &data_at, why);
	if (!e)
		e = take_tensors(w, &after, fd, data_at, why);
	tensor_table_deinit(&after);
	close(fd);
	return e;
}
