#ifndef COMPARE_H
#define COMPARE_H

/* `rivulet job compare`. */
int cmd_compare_main(int argc, char **argv);

#endif
