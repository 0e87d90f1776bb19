#ifndef BOARD_H
#define BOARD_H
#include "rounds.h"

/*
 * One job's rounds as a run of TensorBoard: DIR/NAME-ID8 with one event file, a record per round. A file that is there already is
 * continued behind its last whole record. Only one program at a time has the file open.
 */
struct cmd_board {
	struct json *job;
	char path[4096]; /* of the directory */
	int fd;
	uint64_t size;
	uint64_t next; /* first round that the file lacks */
	uint64_t rounds; /* rounds with scalars in the file */
	bool over; /* the job has ended, and all its rounds are in the file */
};

/* word: which job (find.h). On failure nothing is left open. ERR_EXISTS if another program writes to the file. */
ERR_MUST_USE enum err cmd_board_open(struct cmd_board *b, struct cmd_admin *a, const char *word,
    const char *directory, struct why *why);
void cmd_board_close(struct cmd_board *b);
/* Writes the rounds that have ended since the last call. */
ERR_MUST_USE enum err cmd_board_step(struct cmd_board *b, struct cmd_admin *a, struct why *why);

#endif
