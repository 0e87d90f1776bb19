#ifndef CELLS_H
#define CELLS_H
#include "grid.h"
#include "rounds.h"

/* The jobs of a sweep, and the table of them at the end. */

enum cmd_cells_state {
	CMD_CELLS_WAITING, /* not submitted yet */
	CMD_CELLS_RUNNING,
	CMD_CELLS_PAUSED, /* by a person, its guard, or the coordinator (rounds or folds that failed, a file that is gone) */
	CMD_CELLS_DONE,
	CMD_CELLS_STOPPED,
	CMD_CELLS_REFUSED, /* by the coordinator */
};
const char *cmd_cells_name(enum cmd_cells_state s);

struct cmd_cell {
	enum cmd_cells_state state;
	char name[GRID_NAME_MAX];
	char id[33]; /* "": not submitted */
	char reason[160];
	uint64_t rounds;
	struct cmd_rounds_best best;
};

struct cmd_cells {
	struct grid grid;
	struct cmd_cell *cells; /* grid.cells of them */
	struct cmd_rounds_monitor monitor;
};

size_t cmd_cells_count(const struct cmd_cells *c, enum cmd_cells_state state);
/* Asks the coordinator for the best round of each job; c->monitor, which decides, is that of the first job that has a round. */
ERR_MUST_USE enum err cmd_cells_rank(struct cmd_cells *c, struct cmd_admin *a, struct why *why);
/* Prints the jobs, the best first, jobs without a value last. */
ERR_MUST_USE enum err cmd_cells_print(const struct cmd_cells *c, bool as_json, struct why *why);

#endif
