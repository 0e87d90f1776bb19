#ifndef DEVICE_CHANGE_H
#define DEVICE_CHANGE_H

/* device set, suspend, resume, revoke: argv[0] is the verb. Of devices by name or id, or of all with some labels. */
int cmd_device_change_main(int argc, char **argv);

#endif
