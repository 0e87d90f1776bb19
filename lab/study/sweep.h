#ifndef SWEEP_H
#define SWEEP_H

/* `rivulet job sweep`. */
int cmd_sweep_main(int argc, char **argv);

#endif
