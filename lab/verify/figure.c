#include "figure.h"

#include <math.h>
#include <string.h>

#include "chain.h"
#include "err.h"
#include "hex.h"
#include "history.h"
#include "json.h"
#include "manifest.h"
#include "messages.h"
#include "record_json.h"

/* Null and what is absent are no number. */
static double
number(const struct json *v)
{
	double value;

	return json_double(v, &value) ? value : (double)NAN;
}

static bool
same(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static bool
get_model(const struct json *body, uint8_t out[32])
{
	const char *hex = json_string(json_get(body, "model"));

	return hex && hex_decode(out, 32, hex, strlen(hex));
}

/* Of a model that gives no numbers, the accuracy that counts is 0. */
static bool
says(const struct report *r, const struct cmd_verify_figure *f)
{
	const bool silent = !isfinite(r->eval_loss) && !isfinite(r->eval_accuracy);

	return r->has_evaluate && same(r->eval_loss, f->loss) &&
	    (same(r->eval_accuracy, f->accuracy) || (silent && f->accuracy == 0));
}

static bool
is_of(const struct manifest *m, const struct cmd_verify_figure *f, const struct cmd_verify_entry *e)
{
	return manifest_kind(m) == TASK_EVALUATE && memcmp(m->job, e->link.job, 16) == 0 &&
	    m->round == f->round && memcmp(m->base, f->model, 32) == 0;
}

bool
cmd_verify_figure_wanted(const char *document, size_t len)
{
	struct job_spec spec;

	if (job_parse(&spec, document, len, NULL))
		return false;
	const bool by = spec.recipe.evaluate_by == EVALUATE_PROGRAM;
	job_deinit(&spec);
	return by;
}

enum err
cmd_verify_figure_read(struct cmd_verify_job *j, const struct cmd_verify_entry *e,
    const struct record_detail **manifest, struct manifest *m, struct why *why)
{
	const struct json *evaluate = json_get(e->body, "evaluate");
	struct cmd_verify_figure *out = &j->figure;
	uint8_t digest[HASH_LEN];
	struct report r;

	*manifest = NULL;
	*out = (struct cmd_verify_figure){.round = e->link.round,
	    .loss = number(json_get(evaluate, "loss")),
	    .accuracy = number(json_get(evaluate, "accuracy"))};
	if (!evaluate || !get_model(e->body, out->model) || e->places != 2)
		return err_set(why, ERR_CORRUPT, "its body is not that of a model's evaluation");
	/* A job older than the log begins somewhere. */
	if (j->model_count > 0 && out->round != j->rounds + 1)
		return err_set(why, ERR_CORRUPT, "round %llu follows round %llu of its job",
		    (unsigned long long)out->round, (unsigned long long)j->rounds);
	if (e->count < 2)
		return ERR_OK;
	const struct record_detail *text = &e->details[1];
	if (manifest_decode(m, e->details[0].data, e->details[0].len, NULL) || !is_of(m, out, e))
		return err_set(why, ERR_CORRUPT, "detail 0 is no manifest of this evaluation");
	hash_sha256(digest, text->data, text->len);
	if (memcmp(digest, m->report_hash, HASH_LEN) != 0)
		return err_set(why, ERR_CORRUPT, "detail 1 is not the report that was signed");
	if (messages_report_decode(&r, (const char *)text->data, text->len, NULL) || !says(&r, out))
		return err_set(why, ERR_CORRUPT, "the figure is not the one of the report");
	*manifest = &e->details[0];
	return ERR_OK;
}

enum err
cmd_verify_figure_check(const struct cmd_verify_figure *f, const struct cmd_verify_round *r,
    bool by_program, struct why *why)
{
	if (f->round != r->round) {
		if (by_program && r->evaluated)
			return err_set(
			    why, ERR_CORRUPT, "it has a figure, and no evaluator's report");
		return ERR_OK;
	}
	if (r->committed && r->evaluated && memcmp(f->model, r->model, 32) == 0 &&
	    same(f->loss, r->loss) && same(f->accuracy, r->accuracy))
		return ERR_OK;
	return err_set(why, ERR_CORRUPT, "its figure is not the one that its evaluator reported");
}
