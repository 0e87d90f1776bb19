#ifndef GEMM_CHOICE_H
#define GEMM_CHOICE_H
#include "err.h"
#include "gemm.h"

/*
 * Which kernel a product of GEMM_FAST takes. Products fall into classes by their shape, which neither threads nor pieces of a batch
 * change; each class has one way, the same for all threads of the process. Which way is quickest differs between CPUs more than their names
 * and features tell, so the ways are measured (gemm_choice_measure), and callers may store the result. Until gemm_choice_set the ways are
 * those of gemm_choice_usual. GEMM_MIXED and GEMM_EXACT depend on none of this.
 *
 * Two variables of the environment are for tests and figures, and are read once:
 *
 *   RIVULET_VECTORS=512|256|128   the most bits of our kernels' vectors, in every arithmetic
 *   RIVULET_KERNELS=WORDS         words of gemm_choice_read, on top of the usual ways; gemm_choice_set then changes nothing
 */
enum gemm_way {
	GEMM_ROUNDED, /* our kernels that round each product, as GEMM_EXACT */
	GEMM_FUSED, /* our kernels that fuse where the CPU can; dot products of many rows with short sums add in ascending order */
	GEMM_OPENBLAS, /* of large products alone */
	GEMM_WAYS
};

/* ROWS, COLUMNS: outer products that read a by rows or by columns; DOTS: gemm_dot. OpenBLAS can take the LARGE, LONG and LOW ones
 * (gemm_inside.h). LONG: k >= GEMM_BLAS_LONG, of dots GEMM_DOT_BLOCK. LOW: m < 2 * GEMM_BLAS_ROWS, too few rows to share among threads. */
enum gemm_class {
	GEMM_ROWS,
	GEMM_ROWS_LOW,
	GEMM_ROWS_LOW_LONG,
	GEMM_ROWS_LARGE,
	GEMM_ROWS_LONG,
	GEMM_COLUMNS,
	GEMM_COLUMNS_LOW,
	GEMM_COLUMNS_LOW_LONG,
	GEMM_COLUMNS_LARGE,
	GEMM_COLUMNS_LONG,
	GEMM_DOTS,
	GEMM_DOTS_LOW,
	GEMM_DOTS_LOW_LONG,
	GEMM_DOTS_LARGE,
	GEMM_DOTS_LONG,
	GEMM_PANELS, /* packed once (gemm_pack) */
	GEMM_FOUND, /* rows of b lie anywhere (gemm.b_at) */
	GEMM_SLABS, /* no product: whether convolutions lay rows out for OpenBLAS (gemm_slabs) */
	GEMM_SPOTS, /* gemm_gather, gemm_scatter */
	GEMM_SPOTS_NARROW, /* gemm_gather, gemm_scatter with rows of at most GEMM_NARROW floats, where each sum waits for the one before */
	GEMM_LANES, /* gemm_dots */
	GEMM_CLASSES
};

#define GEMM_NARROW 32

struct gemm_choice {
	enum gemm_way way[GEMM_CLASSES];
};

/* The ways that are quickest on most CPUs. */
struct gemm_choice gemm_choice_usual(void);
/* Sets the ways for all products of the process; called before the first product. */
void gemm_choice_set(const struct gemm_choice *choice);
struct gemm_choice gemm_choice_get(void);
/* Did the environment force the ways? */
bool gemm_choice_forced(void);

/* Can a product of the class go that way? */
bool gemm_choice_can(enum gemm_class class, enum gemm_way way);
const char *gemm_choice_class_name(enum gemm_class class);
const char *gemm_choice_way_name(enum gemm_way way);
/* Changes *choice by words with spaces between: "rounded", "fused" or "openblas" for every class that can, "CLASS=WAY" for one class,
 * "usual" for no change; later words win. ERR_INVALID leaves *choice alone. */
ERR_MUST_USE enum err gemm_choice_read(
    struct gemm_choice *choice, const char *words, struct why *why);

/* Milliseconds of this thread's processor time per class and way; 0: not measured. */
struct gemm_times {
	double ms[GEMM_CLASSES][GEMM_WAYS];
};
/* Times every way of every class on products as networks have them, and chooses gemm_choice_even's way unless another is clearly quicker.
 * Takes up to some 50 ms of this thread's processor time, and allocates some 4 MiB meanwhile. ERR_NOMEM. */
ERR_MUST_USE enum err gemm_choice_measure(struct gemm_choice *choice, struct gemm_times *times);
/* The choice of gemm_choice_measure from times that were measured before. */
struct gemm_choice gemm_choice_of(const struct gemm_times *times);
/* What a choice depends on beside the CPU and the version of this program: the instruction set in use, such as "512 fused"; OpenBLAS's
 * version and the processor that OpenBLAS is set up for. */
const char *gemm_choice_vectors(void);
void gemm_choice_blas(char *out, size_t size);

/* For gemm.c alone. */
enum gemm_way gemm_choice_way(const struct gemm *g, bool dot);
enum gemm_way gemm_choice_way_of(enum gemm_arithmetic how, enum gemm_class class);
unsigned gemm_choice_bits(void); /* the most bits of a vector */

#endif
