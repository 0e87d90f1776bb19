#ifndef NETWORK_H
#define NETWORK_H
#include "net.h"

struct job_spec;

/* A job's network on this machine alone: from a job document and a model file. Calls block on the disk. */

/* Examples in a batch, the same for all commands, so that the figures of one model on one set are the same to the last bit. */
#define CMD_NETWORK_BATCH 256

/* Reads a job document with the checks of a coordinator; the reason names the file. *out is empty after a failure. */
ERR_MUST_USE enum err cmd_network_read_job(struct job_spec *out, const char *path, struct why *why);
/* The built-in network of a recipe, for batches of at most `batch`, without memory for training, and with
 * weights of zero. ERR_INVALID if the recipe has no layers. The caller frees *out with net_free. */
ERR_MUST_USE enum err cmd_network_new(
    struct net **out, const struct recipe *r, uint32_t batch, struct why *why);
/* cmd_network_new, with the weights of a safetensors file (take.h), F16, BF16 and F64 converted to F32; tensors that the file lacks are
 * drawn from the seed. */
ERR_MUST_USE enum err cmd_network_load(struct net **out, const struct recipe *r, const char *file,
    uint64_t seed, uint32_t batch, struct why *why);

#endif
