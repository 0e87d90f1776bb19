#ifndef CPU_SEQUENCE_H
#define CPU_SEQUENCE_H
#include "operands.h"

/* Layers over steps. */

/* lstm, gru. */
extern const struct backend_layer recurrent_passes;
extern const struct backend_layer attention_passes;

#endif
