#ifndef PERSONAL_H
#define PERSONAL_H

/* `rivulet model local JOB`: writes a job's model with the tensors that this device keeps for itself (role "local") as one model file. */
int cmd_personal_main(int argc, char **argv);

#endif
