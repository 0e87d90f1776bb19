#ifndef PRETEND_H
#define PRETEND_H
#include <stdbool.h>
#include <stddef.h>

/*
 * The test hook of a build with faults (base/os/fault.h): with RIVULET_SITE_PRETEND="S F0 F1 ..." in the environment ranks sleep instead of computing: rank r S x Fr seconds for a
 * layer forward, and twice as much back. Several ranks can then share a processor honestly. What is learned means nothing.
 */
bool pretend_on(void);
/* Sleeps as long as a rank's pass over so many layers takes. */
void pretend_pass(unsigned rank, size_t layers, bool back);

#endif
