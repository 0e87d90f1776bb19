#ifndef PARTICIPATION_H
#define PARTICIPATION_H

struct json;

/* Participation: from which devices a job's reports came, by the devices' speed; and the fleet as a coordinator has seen it. */

/* Prints a job's participation (docs/api.md); prints nothing if no device has reported. */
void cmd_participation_print(const struct json *participation);
/* "device profile": writes the fleet as CSV, for `rivulet simulate --fleet`. */
int cmd_participation_profile(int argc, char **argv);

#endif
