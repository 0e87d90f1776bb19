#include "conn_inside.h"
#include "route.h"

void
conn_count_handshake(struct conn *c, enum server_handshake how)
{
	conn_count(&c->io->counts.handshakes[how], 1);
}

void
conn_count_response(struct conn *c)
{
	const struct exchange *x = &c->x;
	const struct route_table *routes = c->io->routes;
	const unsigned hundreds = x->response.status / 100;
	/* A claim stands in no row. */
	const size_t at =
	    x->asked && x->asked >= routes->rows && x->asked < routes->rows + routes->count
	    ? (size_t)(x->asked - routes->rows)
	    : SERVER_ROUTES_MAX;

	if (hundreds >= 2 && hundreds < 2 + SERVER_CLASSES)
		conn_count(&c->io->counts.responses[at][hundreds - 2], 1);
	if (x->response.problem)
		conn_count(&c->io->counts.refusals[x->response.problem], 1);
}

void
conn_add_counts(const struct io_counts *from, struct server_report *to)
{
	to->connections_total += atomic_load(&from->connections);
	for (unsigned i = 0; i < SERVER_HANDSHAKES; i++)
		to->handshakes[i] += atomic_load(&from->handshakes[i]);
	for (unsigned i = 0; i <= SERVER_ROUTES_MAX; i++)
		for (unsigned k = 0; k < SERVER_CLASSES; k++)
			to->responses[i][k] += atomic_load(&from->responses[i][k]);
	for (unsigned i = 0; i < PROBLEM_UNKNOWN; i++)
		to->refusals[i] += atomic_load(&from->refusals[i]);
	to->received_bytes_total += atomic_load(&from->received_bytes);
	to->sent_bytes_total += atomic_load(&from->sent_bytes);
}
