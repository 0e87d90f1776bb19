#include "model_head.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "file.h"

enum err
model_head_read(struct model_head *out, int fd, const struct tensor_rule *rules, size_t rule_count,
    struct why *why)
{
	uint8_t prefix[MODELFILE_PREFIX];
	struct stat st;

	if (fstat(fd, &st) != 0 || file_pread(fd, prefix, sizeof(prefix), 0))
		return err_set(why, ERR_CORRUPT, "a model file cannot be read");
	out->file_bytes = (uint64_t)st.st_size;
	enum err e = modelfile_data_at(prefix, out->file_bytes, &out->data_at, why);
	if (e)
		return e;
	char *head = malloc((size_t)out->data_at);
	if (!head)
		return err_set(why, ERR_NOMEM, "no memory for a model's head");
	e = file_pread(fd, head, (size_t)out->data_at, 0);
	if (e)
		err_set(why, e, "a model file cannot be read");
	else
		e = modelfile_parse(
		    &out->table, NULL, head, (size_t)out->data_at, out->file_bytes, why);
	free(head);
	if (!e)
		e = tensor_table_assign(&out->table, rules, rule_count, why);
	if (!e && out->table.elements == 0)
		e = err_set(why, ERR_INVALID, "the model has nothing to train");
	return e;
}
