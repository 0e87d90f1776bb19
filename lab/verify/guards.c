#include "guards.h"

#include <stdlib.h>
#include <string.h>

#include "rate_control.h"

struct cmd_verify_guards {
	struct job_spec spec;
	struct rate_control schedule;
};

enum err
cmd_verify_guards_new(struct cmd_verify_guards **out, const char *document, size_t len)
{
	struct cmd_verify_guards *c = calloc(1, sizeof(*c));

	*out = NULL;
	if (!c)
		return ERR_NOMEM;
	c->schedule = rate_control_start();
	enum err e = job_parse(&c->spec, document, len, NULL);
	if (!e) {
		*out = c;
		return ERR_OK;
	}
	cmd_verify_guards_free(c);
	return e == ERR_NOMEM ? e : ERR_OK;
}

void
cmd_verify_guards_free(struct cmd_verify_guards *c)
{
	if (c)
		job_deinit(&c->spec);
	free(c);
}

enum err
cmd_verify_guards_step(struct cmd_verify_guards *c, const struct cmd_verify_round *r,
    const uint8_t measured_base[32], struct why *why)
{
	const struct schedule_round now = {.round = r->round,
	    .reports = r->reports,
	    .failed = !r->committed,
	    .base = r->base,
	    .model = r->model,
	    .state = r->state,
	    .evaluated = r->evaluated,
	    .loss = r->loss,
	    .accuracy = r->accuracy,
	    .own = r->own,
	    .measured = r->measured,
	    .measured_base = measured_base};
	/* A record says as little of a bad round as of a good one. */
	const enum guard_verdict said = guard_find(r->guard);
	struct rate_control_turn t;

	rate_control_step(&c->schedule, &c->spec, &now, &t);
	if (said != (t.verdict == GUARD_BAD ? GUARD_CALM : t.verdict))
		return err_set(why, ERR_CORRUPT, "its guard says \"%s\", its rounds \"%s\"",
		    r->guard, guard_word(t.verdict));
	if (memcmp(t.base, r->next, 32) != 0 || memcmp(t.state, r->next_state, 32) != 0)
		return err_set(why, ERR_CORRUPT, "its guard goes back to another model");
	if (t.factor != r->factor)
		return err_set(
		    why, ERR_CORRUPT, "its rate's factor is %.17g, not %.17g", r->factor, t.factor);
	return ERR_OK;
}
