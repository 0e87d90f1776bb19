#ifndef JOB_NEEDS_H
#define JOB_NEEDS_H
#include "after.h"
#include "forecast.h"
#include "job.h"
#include "job_list.h"
#include "round.h"

struct config;
struct job_terms;
struct job_work;
struct models;
struct override_set;
struct store;
struct store_db;

/* What a job is run by, what it needs, and whom it reaches. */

/* --- the values in force of it (terms.c) */

/* From now on, also in the open round. Lock held, or nobody else knows the job. */
void terms_take(struct engine *g, struct job *j, const struct override_set *o);
/* A new job gets the defaults of this version, and a row of them with its own. */
void terms_stamp(struct job *j);
ERR_MUST_USE enum err terms_put_stamp(struct store_db *db, const struct job *j);
/* Of its rounds, or of its evaluation. */
struct round_policy terms_policy(const struct job *j, bool evaluates);
/* What is overridden of a job; empty if there is no row. */
ERR_MUST_USE enum err terms_overrides(
    struct store_db *db, const uint8_t job[16], struct override_set *out, struct why *why);
/* Reads what was noted beside a job that is being loaded, and what is overridden of it. */
ERR_MUST_USE enum err terms_load(
    struct engine *g, struct store_db *db, struct job *j, struct why *why);
/* Of "stop", what the job reaches with its round that has closed. Lock held. */
enum after_limit terms_limit(const struct engine *g, const struct job *j);
/* Can the job's aggregation rule work with so many reports? ERR_INVALID. No lock. */
ERR_MUST_USE enum err terms_rule_takes(
    const struct job_spec *spec, const struct round_spec *round, struct why *why);

/* --- its model before the first round (first.c). No lock. */

/* Its table, roles and size, before it is made: nothing is written, nothing drawn. What is submitted keeps to tensor_table_bound. No
 * lock. */
ERR_MUST_USE enum err jobs_first_table(const struct engine_uses *u, struct job *j, struct why *why);
/* The model of round 0: drawn from the seed into the model folder, or the uploaded one, whose tensors a new file has in the order of
 * the layers if it has them in another. No lock. */
ERR_MUST_USE enum err jobs_first_model(
    const struct engine_uses *u, struct job *j, uint8_t id[32], struct why *why);
/* Reads the table of a model that is there into the job, assigns the job's roles, checks it against the layers. No lock. */
ERR_MUST_USE enum err jobs_take_table(
    const struct engine_uses *u, struct job *j, const uint8_t model[32], struct why *why);
/* The file of a model that was made for a row that did not come, unless a row says that it is somebody's all the same: uploaded, or of
 * the same job, submitted twice. Waits for the store. */
void jobs_drop_leftover(struct store *store, struct models *models, const uint8_t model[32]);

/* --- bytes and operations (sizes.c) */

/* A delta's payload, at its largest; UINT64_MAX if that is no number. */
uint64_t sizes_payload(const struct job *j);
/* The state that goes with a model. */
uint64_t sizes_state(const struct job *j);
/* Memory that a job with work takes while it is not over, as [limits] owner_document_bytes counts it. */
uint64_t job_memory(const struct job *j);
/* What a round of the job will take of the coordinator, by its document and table. */
void sizes_note_fold(struct job_work *w);
/* Is that within [limits], whosever job it is? ERR_LIMIT names the one that it passes. No lock. */
ERR_MUST_USE enum err sizes_check_fold(
    const struct engine_uses *u, const struct job_work *w, struct why *why);

/* --- what is to come (forecast.c) */

/* Lock held. */
struct job_forecast jobs_forecast(const struct config *c, const struct job *j);
/* The document's "keep", with what the configuration says where it says nothing. */
struct keep_spec jobs_forecast_keep(const struct config *c, const struct job *j);
/* Bytes of the models that "keep" holds of a job after so many rounds; 0 is without an end: UINT64_MAX. */
uint64_t jobs_forecast_kept(const struct config *c, const struct job *j, uint64_t rounds);

/* The devices whose programs evaluate a job's models. */
struct engine_evaluators {
	bool by_program; /* else there are none to be, and all else is zero */
	uint64_t devices, suspended; /* named, or labelled so; active, and suspended */
	uint64_t heard; /* of the active ones: asked for work lately; */
	uint64_t ready; /* with a program that evaluates for the trainer */
	char wanted[256]; /* the first names or labels that the job wants, */
	char trainer[RECIPE_NAME_MAX];
	char first[RECIPE_NAME_MAX + 1]; /* and the first device that is there */
};
/* Looks at every device. No lock. */
void jobs_evaluators(struct engine *g, const struct job_spec *spec, struct engine_evaluators *out);
/* Whose program is missing, in words; false: there is one. */
bool jobs_evaluator_missing(char out[ENGINE_UNMEASURED_MAX], const struct engine_evaluators *e);

/* Whom a job can reach now. */
struct engine_reach {
	struct engine_evaluators evaluators;
	struct round_spec round; /* in force; goal 0: of a job that is over nothing is known */
	uint64_t devices; /* active, and selected by the job */
	uint64_t suspended; /* selected likewise, but not active */
	uint64_t lately; /* of the active ones: not silent; */
	uint64_t heard; /* asked for work within some minutes, */
	uint64_t with_data; /* and offered the job's data set with as many examples as it wants */
	uint64_t with_trainer; /* likewise, its trainer */
	uint64_t
	    drawn; /* of those with the data: they have more examples than the job lets them claim, and draw a share, */
	uint64_t too_many; /* or cannot: they get no task */
	uint64_t without_figures; /* of those with the trainer: it does not give those asked for */
	uint64_t most; /* examples that may be claimed */
	struct data_spec data; /* of it name and examples alone; no name: the job needs none */
	char trainer[RECIPE_NAME_MAX];
	const char *warning; /* recipe_warning of it */
};
/* Whom the job, which does not change, can reach now. */
void jobs_reach(struct engine *g, const struct job *j, struct engine_reach *out);

#endif
