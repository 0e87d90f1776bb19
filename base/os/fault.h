#ifndef FAULT_H
#define FAULT_H
/*
 * Named places at which a test may end the process as a power cut would. Built with FAULTS=1, FAULT("name") looks into the
 * environment; in every other build it is nothing, and neither the names nor the code are in the program.
 *
 *   RIVULET_FAULT=name        kill -9 at the first hit of that place
 *   RIVULET_FAULT=name:N      at its Nth hit
 *   RIVULET_FAULT=random:P:S  at any place with probability P in a million, drawn from seed S
 *   RIVULET_FAULT_LOG=FILE    each hit appends the name as a line, before the process ends
 */
#ifdef RIVULET_FAULTS
#define FAULT(name) fault_hit(name)
/* Any thread, also with locks held. */
void fault_hit(const char *name);
#else
#define FAULT(name) ((void)0)
#endif

#endif
