#ifndef INPUTS_FILE_H
#define INPUTS_FILE_H
#include "dataset.h"

/*
 * Rows for a network's forward pass, without labels: an array of shape [rows, example...] or [rows, features], U8 being read as
 * value/255 like the pixels of a data set. Either the one tensor of a safetensors file, F32 (or what widens to it) or U8, or an NPY file
 * as data sets have them (npy.h). Blocks on the disk.
 */
#define CMD_INPUTS_BYTES_MAX ((uint64_t)1 << 32)

/* ERR_INVALID and ERR_LIMIT name the file and what differs from the job's data. The caller deinits *out. */
ERR_MUST_USE enum err cmd_inputs_load(
    struct dataset *out, const char *path, const struct data_spec *spec, struct why *why);

#endif
