#ifndef CMD_H
#define CMD_H
#include <sysexits.h>

#include "err.h"

/* The subcommands of `rivulet`: what main.c's table holds, and the exit codes they share (README.md). */
enum cmd_exit {
	CMD_OK = 0,
	CMD_FAILED = 1,
	CMD_USAGE = 2,
	CMD_NOT_FOUND = 3,
	CMD_DENIED = 4,
	CMD_UNREACHABLE = 5,
	CMD_SETTINGS = 6, /* a settings or input file is wrong */
	CMD_CORRUPT = 7, /* a hash, signature or fingerprint is wrong */
	CMD_INTERRUPTED = 130, /* Ctrl-C or SIGTERM ended a command that can go on later */
	CMD_PERSON =
	    EX_CONFIG, /* the agent cannot start until a person mends its home or settings */
};

/* argv[0] is the subcommand's name. */
int cmd_join_main(int argc, char **argv);
int cmd_run_main(int argc, char **argv);
int cmd_rotate_main(int argc, char **argv);
int cmd_doctor_main(int argc, char **argv);
int cmd_leave_main(int argc, char **argv);
int cmd_trainer_main(int argc, char **argv);
int cmd_train_main(int argc, char **argv);
int cmd_preset_main(int argc, char **argv);
int cmd_eval_main(int argc, char **argv);
int cmd_simulate_main(int argc, char **argv);
int cmd_data_main(int argc, char **argv);
int cmd_status_main(int argc, char **argv);
int cmd_clock_main(int argc, char **argv);
int cmd_job_main(int argc, char **argv);
int cmd_token_main(int argc, char **argv);
int cmd_device_main(int argc, char **argv);
int cmd_model_main(int argc, char **argv);
int cmd_verify_main(int argc, char **argv);
int cmd_audit_main(int argc, char **argv);

#endif
