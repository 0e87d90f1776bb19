#ifndef BACKEND_CPU_H
#define BACKEND_CPU_H

/* The reference for all others: the same bits on every machine (gemm.h). */
extern const struct backend backend_cpu;

#endif
