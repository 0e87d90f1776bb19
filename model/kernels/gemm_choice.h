#ifndef GEMM_CHOICE_H
#define GEMM_CHOICE_H
#include "err.h"
#include "gemm.h"

/*
 * Which kernel a product of GEMM_FAST takes. Products fall into classes by their shape, which neither threads nor pieces of a batch
 * change; each class has one way, the same for all threads of the process. What is quickest differs between CPUs more than their names and
 * features tell, so it is measured (gemm_choice_measure) and kept by whoever has a place for it. Until gemm_choice_set the ways are
 * gemm_choice_usual's. GEMM_MIXED and GEMM_EXACT hang on none of this.
 *
 * Two variables of the environment are for tests and figures, and are read once:
 *
 *   RIVULET_VECTORS=512|256|128   our kernels' vectors have no more bits, in every arithmetic
 *   RIVULET_KERNELS=WORDS         gemm_choice_read's, on top of the usual ways; gemm_choice_set then changes nothing
 */
enum gemm_way {
	GEMM_ROUNDED, /* ours that round each product, as GEMM_EXACT has it */
	GEMM_FUSED, /* ours that fuse where the CPU can; dot products of many rows and shorter sums ascending */
	GEMM_OPENBLAS, /* of large products alone */
	GEMM_WAYS
};

/* a's rows one after the other, or its columns; rows of both (dot). The large ones OpenBLAS can take (gemm_inside.h): long ones have sums of
 * GEMM_BLAS_LONG and more, of dots GEMM_DOT_BLOCK; of low ones m is below 2 * GEMM_BLAS_ROWS, so that threads could not share them. */
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
	GEMM_FOUND, /* rows of b that lie anywhere */
	GEMM_SLABS, /* no products, but whether convolutions lay rows out for OpenBLAS (gemm_slabs) */
	GEMM_SPOTS, /* gemm_gather, gemm_scatter */
	GEMM_SPOTS_NARROW, /* of rows of at most GEMM_NARROW: a sum waits for the one before */
	GEMM_LANES, /* gemm_dots */
	GEMM_CLASSES
};

#define GEMM_NARROW 32

struct gemm_choice {
	enum gemm_way way[GEMM_CLASSES];
};

/* What is quickest on most CPUs. */
struct gemm_choice gemm_choice_usual(void);
/* For all products of the process from now on: before any of them. */
void gemm_choice_set(const struct gemm_choice *choice);
struct gemm_choice gemm_choice_get(void);
/* Did the environment force the ways? */
bool gemm_choice_forced(void);

/* Can a product of the class go that way? */
bool gemm_choice_can(enum gemm_class class, enum gemm_way way);
const char *gemm_choice_class_name(enum gemm_class class);
const char *gemm_choice_way_name(enum gemm_way way);
/* Words with spaces between: "rounded", "fused" or "openblas" for every class that can, "CLASS=WAY" for one, "usual" for none; later words
 * count. ERR_INVALID, and *choice is left alone then. */
ERR_MUST_USE enum err gemm_choice_read(
    struct gemm_choice *choice, const char *words, struct why *why);

/* Milliseconds of this thread's processor time per class and way; 0: not measured. */
struct gemm_times {
	double ms[GEMM_CLASSES][GEMM_WAYS];
};
/* Which way it goes if none is clearly quicker: mostly the usual one. */
enum gemm_way gemm_choice_even(enum gemm_class class);
/* Times every way of every class on products of networks, and takes gemm_choice_even's unless another is clearly quicker. Takes up to some 50 ms
 * of this thread; some 4 MiB are allocated meanwhile. ERR_NOMEM. */
ERR_MUST_USE enum err gemm_choice_measure(struct gemm_choice *choice, struct gemm_times *times);
/* The same from times that are there. */
struct gemm_choice gemm_choice_of(const struct gemm_times *times);
/* What a choice hangs on beside the CPU and the version of this program: the instruction set in use, like "512 fused"; OpenBLAS's version and
 * the processor that it works for. */
const char *gemm_choice_vectors(void);
void gemm_choice_blas(char *out, size_t size);

/* gemm.c's */
enum gemm_way gemm_choice_way(const struct gemm *g, bool dot);
enum gemm_way gemm_choice_way_of(enum gemm_arithmetic how, enum gemm_class class);
unsigned gemm_choice_bits(void); /* of vectors, at most */

#endif
