#ifndef INTERRUPT_H
#define INTERRUPT_H
#include <stdbool.h>

/* SIGINT and SIGTERM of a subcommand that works for long: it ends in order. */

/* From now on these signals are noted, and SIGPIPE is ignored: a program that stays may close its pipes. */
void cmd_interrupt_catch(void);
/* Did one come? In the form of a stop callback; context is not used. */
bool cmd_interrupted(void *context);

#endif
