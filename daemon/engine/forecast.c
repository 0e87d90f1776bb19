#include <string.h>

#include "difference.h"
#include "engine_inside.h"

/* What running and paused jobs will still need of the disk, from what they are: docs/configuration.md has the sums. */

#define REPORT_ROWS \
	1536 /* bytes of database per report: manifest, receipt, report, audit details */
#define ROUND_ROWS 2048 /* and per round */
#define FILE_HEAD 4096 /* of a file of the spool or of a model, at most */

struct forecast {
	uint64_t rounds_left; /* 0: the job sets no end; the figures are then those of one round */
	uint64_t models, spool, deltas, database;
};

/* Models of a job that retention leaves after so many rounds: the first, every keep_every-th, the newest keep_last. */
static uint64_t
models_kept(const struct config *c, uint64_t rounds)
{
	uint64_t older = rounds > c->keep_last ? rounds - c->keep_last : 0;

	return 1 + rounds - older + (c->keep_every ? older / c->keep_every : 0);
}

/* Of the file beside each model but the first. */
static uint64_t
difference_bytes(const struct engine_job *j)
{
	const struct codec *codec = codec_find_name(j->spec.download.codec);

	return codec ? DIFFERENCE_HEAD + difference_payload_bytes(codec, j->table.elements) : 0;
}

/* Lock held. */
static struct forecast
forecast_of(const struct config *c, const struct engine_job *j)
{
	uint64_t payload = engine_variate_payload(j);
	uint64_t done = j->rounds_committed, left = 0;
	uint32_t goal = j->spec.round.goal;
	struct forecast f = {.rounds_left = 0};

	if (j->spec.stop.rounds > done)
		left = j->spec.stop.rounds - done;
	f.rounds_left = left;
	if (left == 0)
		left = 1;
	/* At its worst there is one model and one state more: the old ones go after the commit. */
	f.models = (models_kept(c, done + left) - models_kept(c, done) + 1) *
		(j->model_bytes + FILE_HEAD + difference_bytes(j)) +
	    2 * engine_variate_state_bytes(j);
	/* While every round is a little worse than the one before, a guard holds all of its window. */
	uint64_t held = !j->spec.guard.on ? 0
	    : j->spec.guard.window < left ? j->spec.guard.window
					  : left;
	f.models += held *
	    (j->model_bytes + FILE_HEAD + difference_bytes(j) + engine_variate_state_bytes(j));
	uint64_t wanted = goal > j->round.accepted ? goal - j->round.accepted : 0;
	f.spool = wanted * (manifest_body_bytes(payload) + FILE_HEAD);
	f.deltas = left * goal * (manifest_body_bytes(payload) + FILE_HEAD);
	f.database = left * (ROUND_ROWS + (uint64_t)goal * REPORT_ROWS);
	return f;
}

static struct json *
forecast_json(const struct engine_job *j, const struct forecast *f, const struct engine_room *room)
{
	struct json *v = json_object();
	uint64_t bytes = f->models + f->spool + f->deltas + f->database;

	json_add_string(v, "job", j->hex);
	json_add_string(v, "name", j->spec.name);
	if (f->rounds_left > 0)
		json_add_u64(v, "rounds_left", f->rounds_left);
	else
		json_add_null(v, "rounds_left");
	json_add_u64(v, "models", f->models);
	json_add_u64(v, "spool", f->spool);
	json_add_u64(v, "deltas", f->deltas);
	json_add_u64(v, "database", f->database);
	json_add_u64(v, "bytes", bytes);
	json_add_bool(v, "fits", bytes <= room->free);
	return v;
}

uint64_t
engine_forecast(struct engine *g, const struct engine_room *room, struct json *jobs)
{
	const struct config *c = g->services->config;
	uint64_t sum = 0, deltas = 0;

	pthread_mutex_lock(&g->lock);
	for (const struct engine_job *j = g->jobs; j; j = j->next) {
		if (j->round.state == ROUND_ENDED)
			continue;
		struct forecast f = forecast_of(c, j);
		f.spool = room->spool_on_disk ? f.spool : 0;
		f.deltas = f.deltas < room->keep ? f.deltas : room->keep;
		deltas += f.deltas;
		sum += f.models + f.spool + f.database;
		if (jobs)
			json_push(jobs, forecast_json(j, &f, room));
	}
	pthread_mutex_unlock(&g->lock);
	return sum + (deltas < room->keep ? deltas : room->keep);
}
