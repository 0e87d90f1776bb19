#ifndef EXPORT_ROUNDS_H
#define EXPORT_ROUNDS_H

/* `rivulet job export`. */
int cmd_export_rounds(int argc, char **argv);

#endif
