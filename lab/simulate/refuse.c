#include "refuse.h"

/* What only a real fleet has. */
static enum err
check_job(const struct job_spec *job, struct why *why)
{
	if (job->only_evaluates)
		return err_set(why, ERR_UNSUPPORTED,
		    "a job of kind evaluate has no rounds to simulate: see rivulet eval");
	if (job->select.label_count > 0)
		return err_set(why, ERR_UNSUPPORTED,
		    "select.labels: simulated devices have no labels; take it out of the job, and "
		    "leave others out of the fleet");
	if (!codec_find_name(job->recipe.codec))
		return err_set(why, ERR_UNSUPPORTED, "the codec %s of upload is not in this build",
		    job->recipe.codec);
	return ERR_OK;
}

static enum err
check_trainer(const struct simulate_options *o, struct why *why)
{
	const struct recipe *r = &o->setup.job->recipe;
	const struct trainer *trainer = trainer_find(o->setup.settings, r);

	if (!trainer)
		return err_set(why, ERR_NOTFOUND,
		    "the job's trainer is %s: give a [trainer %s] with --config FILE, or "
		    "--timing-only",
		    r->trainer, r->trainer);
	if (trainer->run == trainer_external_run && r->local.seconds > 0)
		return err_set(why, ERR_UNSUPPORTED,
		    "local.seconds with a trainer that is a program: how much it does in that time "
		    "depends on this machine; say epochs or steps, or --timing-only");
	if (!o->data)
		return err_set(why, ERR_NOTFOUND,
		    "no [data %s] for the devices: give it with --config FILE, another name with "
		    "--data NAME, or --timing-only",
		    r->data.name);
	return ERR_OK;
}

/* Without data only the table of the fleet can say how much there is to do. */
static enum err
check_amounts(const struct simulate_options *o, struct why *why)
{
	const struct local_spec *l = &o->setup.job->recipe.local;

	for (size_t i = 0; i < o->fleet->profiles.count && !o->data; i++)
		if (o->fleet->profiles.items[i].examples == 0 &&
		    ((l->unit != LOCAL_STEPS && l->unit != LOCAL_SIZED) || l->batch == 0))
			return err_set(why, ERR_INVALID,
			    "how many examples does a device have? Give [data %s] with --config, "
			    "or a column \"examples\" in the fleet",
			    o->setup.job->recipe.data.name);
	if (o->setup.job->stop.rounds == 0 && o->rounds == 0)
		return err_set(why, ERR_INVALID,
		    "--timing-only measures no model: say when it ends, with --rounds N");
	return ERR_OK;
}

/* Its evaluators' programs are not here: what would end by their figures alone would never end. */
static enum err
check_central(const struct simulate_options *o, struct why *why)
{
	const struct job_spec *job = o->setup.job;

	if (job->recipe.evaluate_by != EVALUATE_PROGRAM || job->stop.rounds > 0 ||
	    job->stop.reports > 0 || job->stop.seconds > 0 || o->rounds > 0 ||
	    (o->setup.test && job->recipe.net.layer_count > 0))
		return ERR_OK;
	return err_set(why, ERR_INVALID,
	    "evaluate.by \"program\": no evaluator runs in a simulation, so that no target is "
	    "reached: say when it ends, with --rounds N%s",
	    job->recipe.net.layer_count > 0 ? ", or measure with --test NAME" : "");
}

enum err
simulate_refuse(const struct simulate_options *o, struct why *why)
{
	enum err e = check_job(o->setup.job, why);

	if (!e)
		e = check_central(o, why);
	if (e)
		return e;
	return o->setup.train ? check_trainer(o, why) : check_amounts(o, why);
}
