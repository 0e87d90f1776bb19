#ifndef CPU_SEQUENCE_H
#define CPU_SEQUENCE_H

/* Layers over steps. */

/* lstm, gru. */
extern const struct backend_layer recurrent_passes;
extern const struct backend_layer attention_passes;
/* The last step first; one row made of all. */
extern const struct backend_layer steps_reverse_passes, steps_pool_passes;

#endif
