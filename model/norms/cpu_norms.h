#ifndef CPU_NORMS_H
#define CPU_NORMS_H

/* norm_group: groupnorm; norm_row: layernorm and rmsnorm. */
extern const struct backend_layer norm_group_passes, norm_row_passes;
extern const struct backend_layer batchnorm_passes;

#endif
