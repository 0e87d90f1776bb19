#ifndef RAM_H
#define RAM_H
#include <stdint.h>

/* Bytes of memory that this process may have: the machine's, or less where control groups (version 2) or resource limits say so. 0: not
 * known. */
uint64_t ram_limit(void);
/* The lowest memory.max of the control groups in `groups` (the text of /proc/self/cgroup), read below `folder`. UINT64_MAX: no limit. */
uint64_t ram_cgroup(const char *groups, const char *folder);

#endif
