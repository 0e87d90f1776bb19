#ifndef MODEL_HEAD_H
#define MODEL_HEAD_H
#include "modelfile.h"

/* The head of a model file: all that stands before its data. */
struct model_head {
	uint64_t file_bytes, data_at;
	struct tensor_table table; /* the caller frees it, also after a failure */
};

/* Reads the head of the file behind fd and gives the tensors their roles. ERR_INVALID if no tensor is trained; ERR_CORRUPT. */
ERR_MUST_USE enum err model_head_read(struct model_head *out, int fd,
    const struct tensor_rule *rules, size_t rule_count, struct why *why);

#endif
