#ifndef EVALUATE_H
#define EVALUATE_H

/* `rivulet job evaluate`: a job like another one that only has a model evaluated. */
int cmd_evaluate_main(int argc, char **argv);

#endif
