#ifndef BACKEND_CPU_H
#define BACKEND_CPU_H

/* The back end in main memory, the reference for all other back ends: the same bits on every machine (gemm.h). */
extern const struct backend backend_cpu;

#endif
