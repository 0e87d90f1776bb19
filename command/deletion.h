#ifndef DELETION_H
#define DELETION_H

/* The subcommands "job delete" and "model delete". */
int cmd_deletion_jobs(int argc, char **argv);
int cmd_deletion_models(int argc, char **argv);

#endif
