#ifndef ROTATE_H
#define ROTATE_H
#include <stddef.h>
#include <stdint.h>

/*
 * The randomised Hadamard rotation of a block: x -> H D x / sqrt(n), with D random signs and H the Hadamard matrix of n, a
 * power of two up to ROTATE_MAX. It spreads a block's energy evenly over its elements and keeps its norm. Additions in an order
 * that does not depend on the machine, each rounded once.
 */
#define ROTATE_MAX 4096

/* In place; the signs are those of (seed, block). */
void rotate_forward(float *x, size_t n, uint64_t seed, uint64_t block);
/* The inverse: D H x / sqrt(n). */
void rotate_back(float *x, size_t n, uint64_t seed, uint64_t block);

#endif
