#ifndef NETWORK_H
#define NETWORK_H
#include "net.h"

struct job_spec;

/* A job's network on this machine alone: from a job document and a model file. Calls block on the disk. */

/* Examples in a batch: figures of one model on one set are the same to the last bit, whichever command gives them. */
#define CMD_NETWORK_BATCH 256

/* Reads a job document as a coordinator would take it; the reason names the file. *out is empty after a failure. */
ERR_MUST_USE enum err cmd_network_read_job(struct job_spec *out, const char *path, struct why *why);
/* The built-in network of a recipe, for batches of at most `batch`, without what training needs, and with
 * weights of zero. ERR_INVALID if the recipe has no layers. The caller frees *out with net_free. */
ERR_MUST_USE enum err cmd_network_new(
    struct net **out, const struct recipe *r, uint32_t batch, struct why *why);
/* The same with the weights of a safetensors file (take.h), F16, BF16 and F64 widened; what it lacks is drawn from the seed. */
ERR_MUST_USE enum err cmd_network_load(struct net **out, const struct recipe *r, const char *file,
    uint64_t seed, uint32_t batch, struct why *why);

#endif
