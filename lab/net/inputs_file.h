#ifndef INPUTS_FILE_H
#define INPUTS_FILE_H
#include "dataset.h"

/*
 * Inputs for a network's forward pass, without labels: an array of shape [rows, example...] or [rows, features]; U8 is read as
 * value/255, as the pixels of a data set. Either the only tensor of a safetensors file, of type F32, a type that widens to F32, or U8, or
 * an NPY file as for data sets (npy.h). Blocks on the disk.
 */
#define CMD_INPUTS_BYTES_MAX ((uint64_t)1 << 32)

/* ERR_INVALID and ERR_LIMIT name the file and what differs from the job's data. The caller deinits *out. */
ERR_MUST_USE enum err cmd_inputs_load(
    struct dataset *out, const char *path, const struct data_spec *spec, struct why *why);

#endif
