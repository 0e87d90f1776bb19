#include "cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"

const char *
cmd_cells_name(enum cmd_cells_state s)
{
	static const char *const names[] = {
	    [CMD_CELLS_WAITING] = "waiting",
	    [CMD_CELLS_RUNNING] = "running",
	    [CMD_CELLS_PAUSED] = "paused",
	    [CMD_CELLS_DONE] = "done",
	    [CMD_CELLS_STOPPED] = "stopped",
	    [CMD_CELLS_REFUSED] = "refused",
	};

	return names[s];
}

size_t
cmd_cells_count(const struct cmd_cells *c, enum cmd_cells_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < c->grid.cells; i++)
		n += c->cells[i].state == state;
	return n;
}

enum err
cmd_cells_rank(struct cmd_cells *c, struct cmd_admin *a, struct why *why)
{
	enum err e = ERR_OK;
	bool chosen = false;

	for (size_t i = 0; i < c->grid.cells && !e; i++) {
		struct cmd_cell *cell = &c->cells[i];
		struct json *job = NULL;
		if (!*cell->id || cell->rounds == 0)
			continue;
		e = cmd_rounds_job(a, cell->id, &job, why);
		if (!e && !chosen)
			e = cmd_rounds_monitor(a, job, &c->monitor, why);
		chosen = true;
		if (!e)
			e = cmd_rounds_best(a, job, &c->monitor, &cell->best, why);
		json_free(job);
	}
	return e;
}

struct place {
	const struct cmd_cell *cell;
	size_t index;
	double key; /* the smaller, the better */
};

static int
compare(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	bool x_has = x->cell->best.known, y_has = y->cell->best.known;

	if (x_has != y_has)
		return x_has ? -1 : 1;
	if (x_has && x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

static void
put_head(struct cmd_table *t, const struct cmd_cells *c)
{
	static const char *const heads[] = {"RANK", "NAME", "JOB", "STATE", "ROUNDS"};
	const char *all[CMD_PRINT_COLUMNS_MAX];
	size_t n = sizeof(heads) / sizeof(heads[0]);

	memcpy(all, heads, sizeof(heads));
	all[n++] = *c->monitor.tag ? c->monitor.tag : "BEST";
	all[n++] = "AT ROUND";
	for (size_t k = 0; k < c->grid.count; k++)
		if (c->grid.lists[k].count > 1)
			all[n++] = c->grid.lists[k].path;
	cmd_print_start(t, all, n);
}

static void
put_row(struct cmd_table *t, const struct cmd_cells *c, const struct place *p, size_t rank)
{
	const struct cmd_cell *cell = p->cell;
	char value[CMD_PRINT_CELL_MAX], number[CMD_PRINT_NUMBER_MAX];

	cmd_print_cell(t, "%zu", rank);
	cmd_print_cell(t, "%s", cell->name);
	cmd_print_cell(t, "%.*s", CMD_PRINT_ID_SHOWN, *cell->id ? cell->id : "-");
	cmd_print_cell(t, "%s", cmd_cells_name(cell->state));
	cmd_print_cell(t, "%" PRIu64, cell->rounds);
	if (cell->best.known) {
		cmd_print_cell(t, "%s", cmd_print_number(number, cell->best.value));
		cmd_print_cell(t, "%" PRIu64, cell->best.round);
	} else {
		cmd_print_cell(t, "-");
		cmd_print_cell(t, "-");
	}
	for (size_t k = 0; k < c->grid.count; k++) {
		if (c->grid.lists[k].count <= 1)
			continue;
		grid_show(value, sizeof(value), grid_value(&c->grid, p->index, k));
		cmd_print_cell(t, "%s", value);
	}
}

static void
print_table(const struct cmd_cells *c, const struct place *places)
{
	struct cmd_table t;

	put_head(&t, c);
	for (size_t i = 0; i < c->grid.cells; i++)
		put_row(&t, c, &places[i], i + 1);
	cmd_print_end(&t);
	for (size_t i = 0; i < c->grid.cells; i++)
		if (*c->cells[i].reason)
			cmd_print_line("%s: %s: %s", c->cells[i].name,
			    cmd_cells_name(c->cells[i].state), c->cells[i].reason);
}

static struct json *
best_json(const struct cmd_rounds_best *best)
{
	struct json *o = json_object();

	json_add_u64(o, "round", best->round);
	json_add_double(o, "value", best->value);
	if (*best->model)
		json_add_string(o, "model", best->model);
	return o;
}

static struct json *
cell_json(const struct cmd_cells *c, const struct place *p, size_t rank)
{
	const struct cmd_cell *cell = p->cell;
	struct json *o = json_object(), *set = json_object();

	json_add_u64(o, "rank", rank);
	json_add_string(o, "name", cell->name);
	if (*cell->id)
		json_add_string(o, "job", cell->id);
	else
		json_add_null(o, "job");
	json_add_string(o, "state", cmd_cells_name(cell->state));
	json_add_string(o, "reason", cell->reason);
	json_add_u64(o, "rounds", cell->rounds);
	if (cell->best.known)
		json_add(o, "best", best_json(&cell->best));
	else
		json_add_null(o, "best");
	for (size_t k = 0; k < c->grid.count; k++)
		json_add(set, c->grid.lists[k].path, json_copy(grid_value(&c->grid, p->index, k)));
	json_add(o, "set", set);
	return o;
}

static void
print_json(const struct cmd_cells *c, const struct place *places)
{
	struct json *doc = json_object(), *jobs = json_array();

	json_add_string(doc, "metric", c->monitor.tag);
	json_add_string(doc, "mode", c->monitor.largest ? "max" : "min");
	for (size_t i = 0; i < c->grid.cells; i++)
		json_push(jobs, cell_json(c, &places[i], i + 1));
	json_add(doc, "jobs", jobs);
	cmd_print_json(doc);
	json_free(doc);
}

enum err
cmd_cells_print(const struct cmd_cells *c, bool as_json, struct why *why)
{
	struct place *places = calloc(c->grid.cells, sizeof(*places));

	if (!places)
		return err_set(why, ERR_NOMEM, "no memory");
	for (size_t i = 0; i < c->grid.cells; i++) {
		double value = c->cells[i].best.value;
		places[i] = (struct place){&c->cells[i], i, c->monitor.largest ? -value : value};
	}
	qsort(places, c->grid.cells, sizeof(*places), compare);
	if (as_json)
		print_json(c, places);
	else
		print_table(c, places);
	free(places);
	return ERR_OK;
}
