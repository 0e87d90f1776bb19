#ifndef KERNEL_CHOICE_H
#define KERNEL_CHOICE_H
#include <stdbool.h>

/*
 * Which kernels networks of "arithmetic": "fast" take on this machine (gemm_choice.h): measured once, for some 30 ms, and kept in a file
 * "kernels" for one CPU, one version of this program and one OpenBLAS: in the device's home; else in the user's cache,
 * $XDG_CACHE_HOME/rivulet or ~/.cache/rivulet. A file that is damaged, foreign or not there is made anew, and where none can be made the choice is this
 * process's alone. Of processes that measure at the same time one writes, and the others take what it wrote. A process makes one choice.
 *
 * All threads; all block.
 */
#define KERNEL_CHOICE_FILE "kernels"
#define KERNEL_CHOICE_MAX 4096 /* bytes of it */

/* Before a fast network is made. home NULL: there is none. The first call decides. */
void kernel_choice_ready(const char *home);
/* The file's text, for a program that makes the networks in this process's place; "" before kernel_choice_ready, or if the environment forces the
 * kernels. It stays until the process ends. */
const char *kernel_choice_text(void);
/* Such a text, in the place of kernel_choice_ready: while there is no network. False, and nothing is changed, if it is of another machine or
 * version, or the environment forces the kernels. */
bool kernel_choice_take(const char *text);

#endif
