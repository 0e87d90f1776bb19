#ifndef DEVICE_CHANGE_H
#define DEVICE_CHANGE_H

/* The subcommands "device set", "suspend", "resume" and "revoke": argv[0] is the verb. Devices are given by name or id, or by labels. */
int cmd_device_change_main(int argc, char **argv);

#endif
