#ifndef EXPORT_H
#define EXPORT_H

/* `rivulet job export`. */
int cmd_export_main(int argc, char **argv);

#endif
