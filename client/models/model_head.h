#ifndef MODEL_HEAD_H
#define MODEL_HEAD_H
#include "modelfile.h"

/* What stands in front of a model file's data. */
struct model_head {
	uint64_t file_bytes, data_at;
	struct tensor_table table; /* the caller frees it, also after a failure */
};

/* Reads the head of the file behind fd and gives the tensors their roles. ERR_INVALID if none is to be trained; ERR_CORRUPT. */
ERR_MUST_USE enum err model_head_read(struct model_head *out, int fd,
    const struct tensor_rule *rules, size_t rule_count, struct why *why);

#endif
