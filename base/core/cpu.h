#ifndef CPU_H
#define CPU_H
#include <sched.h>
#include <unistd.h>

/* Every machine must compute the same bits: no value is kept wider than its type (x87), and no sum is reordered. */
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16
#error "f32 and f64 must be rounded as such: on i386 build with -msse2 -mfpmath=sse"
#endif
#ifdef __FAST_MATH__
#error "-ffast-math changes results"
#endif

/*
 * CPU_CLONES before a function definition makes the compiler emit it for several instruction sets and choose
 * at load time. Results do not depend on the choice: -ffp-contract=off keeps every product and sum rounded
 * once. Empty where ifuncs do not work: other architectures, and the thread sanitizer, which they crash
 * before main. Only for static functions: clang before 17 exports a clone under a name that other files do
 * not find. The cloned function's name must be unique in the tree, too: clang 14 also exports the resolver that chooses a clone.
 *
 * x86-64-v4, not avx512f: without the short vectors of AVX-512VL gcc 12 copies scalars with moves of 512 bits, and SSE code that follows
 * one stalls (130 ns for each call of norm_sums_add_pair on a Xeon of the Sapphire Rapids kind). clang before 18 takes the name and
 * never chooses it.
 */
#if defined(__SANITIZE_THREAD__)
#define CPU_NO_CLONES 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CPU_NO_CLONES 1
#endif
#endif

#if defined(__x86_64__) && defined(__linux__) && !defined(CPU_NO_CLONES)
#if defined(__clang__) && __clang_major__ < 18
#define CPU_WIDEST "avx512f"
#else
#define CPU_WIDEST "arch=x86-64-v4"
#endif
#define CPU_CLONES __attribute__((target_clones("default", "avx2", CPU_WIDEST)))
#else
#define CPU_CLONES
#endif

/* Processors this process may run on, at least 1; above 1024: all that are online. */
static inline unsigned
cpu_count(void)
{
	cpu_set_t set;
	long n;

	/* The mask of a machine with more than 1024 processors does not fit into the set. */
	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		n = CPU_COUNT(&set);
	else
		n = sysconf(_SC_NPROCESSORS_ONLN);
	return n > 0 ? (unsigned)n : 1;
}

#endif
