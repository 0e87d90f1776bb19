#ifndef STATEMENT_H
#define STATEMENT_H
#include "estimate.h"

/* A plan as JSON (keys in docs/simulate.md), and that as text. The caller frees it. */
struct json *plan_statement(const struct plan_estimate *e);
void plan_statement_print(const struct json *sheet);
/* The part of it that is of one device. */
struct plan_task {
	const struct recipe *recipe;
	const struct tensor_table *table;
	uint64_t examples;
	struct footprint footprint;
	struct footprint_bytes bytes;
	const struct net *net; /* as it was counted; NULL: a program trains */
	uint64_t limit; /* of memory; 0: none, else with a net: */
	struct footprint_proposal proposal;
};
struct json *plan_statement_task(const struct plan_task *t);
void plan_statement_print_task(const struct json *sheet);

#endif
