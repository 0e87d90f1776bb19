#ifndef RAM_H
#define RAM_H
#include <stdint.h>

/* Bytes of memory that this process may have: the machine's, or less where its control groups (version 2) or resource limits say so. 0: it
 * cannot be told. */
uint64_t ram_limit(void);
/* The least that control groups allow, by what /proc/self/cgroup has, below that folder; UINT64_MAX: nothing is said. */
uint64_t ram_cgroup(const char *groups, const char *folder);

#endif
