#ifndef CPU_SEQUENCE_H
#define CPU_SEQUENCE_H

/* Layers over steps. */

/* lstm, gru. */
extern const struct backend_layer recurrent_passes;
extern const struct backend_layer attention_passes;
/* steps_reverse: the last step first; steps_pool: one row made of all rows. */
extern const struct backend_layer steps_reverse_passes, steps_pool_passes;

#endif
