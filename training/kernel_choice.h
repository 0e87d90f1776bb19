#ifndef KERNEL_CHOICE_H
#define KERNEL_CHOICE_H
#include <stdbool.h>

/*
 * Which kernels networks of "arithmetic": "fast" use on this machine (gemm_choice.h): measured once, for some 30 ms, and kept in a file
 * "kernels" for one CPU, one version of this program and one OpenBLAS: in the device's home; else in the user's cache,
 * $XDG_CACHE_HOME/rivulet or ~/.cache/rivulet. A file that is damaged, missing or of another machine is made anew; if none can be written,
 * the choice is this process's alone. Of processes that measure at the same time one writes the file, and the others use it. A process
 * makes one choice.
 *
 * All threads; all block.
 */
#define KERNEL_CHOICE_FILE "kernels"
#define KERNEL_CHOICE_MAX 4096 /* bytes of the file */

/* Makes the choice, before a fast network is made; home: the device's, NULL: none. Only the first call has an effect. */
void kernel_choice_ready(const char *home);
/* The choice as the file's text, for a program that makes the networks in place of this process; "" before kernel_choice_ready, or if the
 * environment forces the kernels. Valid until the process ends. */
const char *kernel_choice_text(void);
/* Makes the choice that kernel_choice_text of another process says, in place of kernel_choice_ready, while there is no network. False, and
 * nothing is changed, if the text is of another machine or version, or the environment forces the kernels. */
bool kernel_choice_take(const char *text);

#endif
