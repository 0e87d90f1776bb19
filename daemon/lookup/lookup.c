#include "lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "exchange.h"
#include "fits.h"
#include "hex.h"
#include "http.h"
#include "json.h"
#include "registry.h"
#include "services.h"
#include "view.h"

#define THINGS_PER_ROW 8 /* in memory, of what a row of the database costs */

static const struct kind {
	const char *word, *noun;
	size_t digits; /* of a full id */
	enum problem_type missing;
} kinds[] = {
    [LOOKUP_JOB] = {"job", "job", 32, PROBLEM_UNKNOWN_JOB},
    [LOOKUP_DEVICE] = {"device", "device", 64, PROBLEM_NOT_FOUND},
    [LOOKUP_MODEL] = {"model", "model", 64, PROBLEM_NOT_FOUND},
    [LOOKUP_WEIGHTS] = {"weights", "job or model", 64, PROBLEM_NOT_FOUND},
};

struct search {
	const struct lookup_question *question;
	char hex[65]; /* of the thing that is looked at */
	bool exact; /* the word is the full id of `found` */
	struct fits_thing found;
	struct fits own, others;
};

static enum lookup_kind
find_kind(const char *word)
{
	for (enum lookup_kind k = 0; k < LOOKUP_UNKNOWN; k++)
		if (strcmp(kinds[k].word, word) == 0)
			return k;
	return LOOKUP_UNKNOWN;
}

static struct fits *
step_of(struct search *s, const uint8_t owner[32])
{
	const uint8_t *asker = s->question->owner;

	return asker && memcmp(asker, owner, 32) == 0 ? &s->own : &s->others;
}

/* Notes a thing whose id begins with the word. `id` may be the id of a job whose model is the thing. */
static void
note_id(struct search *s, const struct fits_thing *t, const uint8_t *id, size_t len)
{
	const char *word = s->question->word;

	hex_encode(s->hex, id, len);
	if (!*word || strncmp(s->hex, word, strlen(word)) != 0)
		return;
	if (strlen(word) == 2 * len) {
		s->exact = true;
		s->found = *t;
	}
	fits_id(step_of(s, t->owner), t);
}

static void
note_name(struct search *s, const struct fits_thing *t)
{
	if (strcmp(t->name, s->question->word) == 0)
		fits_name(step_of(s, t->owner), t);
}

/* --- jobs and their models */

static void
as_model(struct fits_thing *t, const uint8_t model[32])
{
	memcpy(t->id, model, 32);
	t->id_len = 32;
}

static void
note_models(struct search *s, const struct job_view *j, struct fits_thing *t)
{
	if (s->question->kind == LOOKUP_WEIGHTS) {
		as_model(t, j->model);
		note_name(s, t);
		note_id(s, t, j->id, sizeof(j->id));
	}
	as_model(t, j->model);
	note_id(s, t, j->model, 32);
	if (!j->has_best)
		return;
	as_model(t, j->best.model);
	note_id(s, t, j->best.model, 32);
}

static void
note_job(struct search *s, const struct job_view *j)
{
	struct fits_thing t = {.id_len = 16,
	    .lives = !states_job_over(j->state),
	    .ages = true,
	    .age = j->created_at_seconds};

	memcpy(t.id, j->id, sizeof(j->id));
	memcpy(t.owner, j->owner, sizeof(t.owner));
	snprintf(t.name, sizeof(t.name), "%s", j->name);
	if (s->question->kind != LOOKUP_JOB) {
		note_models(s, j, &t);
		return;
	}
	note_name(s, &t);
	note_id(s, &t, j->id, sizeof(j->id));
}

static void
note_looked(const struct lookup_question *q, uint64_t things)
{
	if (q->looked)
		*q->looked += things;
}

static enum err
look_at_jobs(struct engine *g, struct search *s)
{
	struct engine_slice *slice = calloc(1, sizeof(*slice));

	if (!slice)
		return ERR_NOMEM;
	while (engine_jobs(g, slice)) {
		note_looked(s->question, slice->looked);
		for (size_t i = 0; i < slice->count; i++)
			note_job(s, &slice->jobs[i]);
	}
	free(slice);
	return ERR_OK;
}

/* --- devices: nobody's, all of one step */

static enum err
note_device(void *ctx, const struct registry_view *d)
{
	static const uint8_t nobody[32];
	enum device_state state = d->row.state;
	struct fits_thing t = {
	    .id_len = 32, .lives = state == DEVICE_ACTIVE || state == DEVICE_SUSPENDED};

	note_looked(((struct search *)ctx)->question, 1);
	memcpy(t.id, d->row.id, 32);
	memcpy(t.owner, nobody, sizeof(nobody));
	snprintf(t.name, sizeof(t.name), "%s", d->row.name);
	note_name(ctx, &t);
	note_id(ctx, &t, d->row.id, 32);
	return ERR_OK;
}

/* --- the answer */

static enum err
ambiguous(const struct lookup_question *q, const struct fits_thing both[2], struct why *why)
{
	char first[65], second[65];

	hex_encode(first, both[0].id, both[0].id_len);
	hex_encode(second, both[1].id, both[1].id_len);
	return err_set(why, ERR_EXISTS,
	    "\"%.64s\" fits %s of \"%s\" and %s of \"%s\"; give the full id", q->word, first,
	    both[0].name, second, both[1].name);
}

static enum err
choose(const struct search *s, char id[65], struct why *why)
{
	const struct fits *steps[] = {&s->own, &s->others};
	const struct lookup_question *q = s->question;
	struct fits_thing both[2] = {s->found};
	size_t count = s->exact;

	for (size_t i = 0; i < 2 && count == 0; i++)
		count = fits_found(steps[i], both);
	if (count == 0)
		return err_set(why, ERR_NOTFOUND, "no %s \"%.64s\"%s", kinds[q->kind].noun, q->word,
		    q->kind == LOOKUP_MODEL || q->kind == LOOKUP_WEIGHTS
			? "; a model may be no longer kept ([retention], the job's \"keep\")"
			: "");
	if (count > 1)
		return ambiguous(q, both, why);
	hex_encode(id, both[0].id, both[0].id_len);
	return ERR_OK;
}

/*
 * id: what the word means, in hex (README.md). ERR_NOTFOUND; ERR_EXISTS: two things fit the word at one step, and why names
 * both. Looks at every job or device, releasing locks in between: for a worker.
 */
static enum err
find(struct engine *g, struct registry *registry, const struct lookup_question *q, char id[65],
    struct why *why)
{
	struct search s = {.question = q};
	enum err e = q->kind == LOOKUP_DEVICE ? registry_each(registry, NULL, note_device, &s)
					      : look_at_jobs(g, &s);

	return e ? e : choose(&s, id, why);
}

/* The owner whose things come first; NULL for a reader, who owns none. */
static const uint8_t *
asker(const struct exchange *x)
{
	return x->who.roles & (ROLE_ADMIN | ROLE_SUBMITTER) ? x->who.owner : NULL;
}

void
lookup_handle(struct exchange *x)
{
	char kind[16], word[FITS_NAME_MAX], id[65];
	struct why why = {""};
	uint64_t looked = 0;
	struct lookup_question q = {.word = word, .owner = asker(x), .looked = &looked};

	if (!http_query(&x->request, "kind", kind, sizeof(kind)))
		kind[0] = '\0';
	q.kind = find_kind(kind);
	if (q.kind == LOOKUP_UNKNOWN || !http_query(&x->request, "word", word, sizeof(word)) ||
	    !*word) {
		exchange_problem(x, PROBLEM_BAD_REQUEST,
		    "kind is job, device, model or weights, and word a name, an id or the "
		    "beginning of one");
		return;
	}
	enum err e = find(x->services->engine, x->services->registry, &q, id, &why);
	exchange_looked(x, looked / THINGS_PER_ROW);
	if (e == ERR_NOTFOUND)
		exchange_problem(x, kinds[q.kind].missing, "%s", why.text);
	else if (e == ERR_EXISTS)
		exchange_problem(x, PROBLEM_AMBIGUOUS, "%s", why.text);
	else if (e)
		exchange_failed(x, e, &why);
	if (e)
		return;
	struct json *v = json_object();
	json_add_string(v, "kind", kind);
	json_add_string(v, "id", id);
	exchange_json(x, 200, v);
}
