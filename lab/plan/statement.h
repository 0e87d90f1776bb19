#ifndef STATEMENT_H
#define STATEMENT_H
#include "estimate.h"

/* A plan as JSON (keys in docs/simulate.md), which the caller frees; plan_statement_print prints that JSON as text. */
struct json *plan_statement(const struct plan_estimate *e);
void plan_statement_print(const struct json *sheet);
/* The part of a plan that is about one device. */
struct plan_task {
	const struct recipe *recipe;
	const struct tensor_table *table;
	uint64_t examples;
	struct footprint footprint;
	struct footprint_bytes bytes;
	const struct net *net; /* footprint_network; NULL: a program trains */
	uint64_t limit; /* of memory, bytes; 0: none */
	struct footprint_proposal proposal; /* set if there are net and limit */
};
struct json *plan_statement_task(const struct plan_task *t);
void plan_statement_print_task(const struct json *sheet);

#endif
