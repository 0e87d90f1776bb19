#ifndef SERVER_STEP_H
#define SERVER_STEP_H
#include "download_step.h"
#include "server_opt.h"

struct stop;

/*
 * The second half of a fold: an update moves the weights. The server optimizer moves the weights of train tensors; the update is added to
 * those of average tensors unchanged. In a job that sends new models as differences (download_step.h) the weights become what devices
 * decode.
 *
 * What a job keeps between rounds is one vector of floats: the optimizer's vectors, then the rule's last update, then what the
 * download's codec has lost so far, last the control variate.
 *
 *     table -> server_step_choose -> [ server_step_download ] -> [ server_step_scale ] -> data, state -> server_step_run of every tile
 *
 * Tiles are independent: any number of threads may run different ones of the same round at a time.
 */
struct server_step {
	const struct tensor_table *table;
	const struct aggregate_spec *spec;
	const struct server_opt *opt;
	struct server_opt_params params;
	/* Of this round by its schedule; params.rate is what moves the weights (server_step_scale). */
	double rate;
	/* The base model's data section, table->bytes long; becomes the new model's. */
	uint8_t *data;
	float *state; /* server_step_floats floats, changed in place; NULL if there is no state */
	struct download_step download;
};

/* Sets spec, and opt, rate and params for this round. ERR_UNSUPPORTED if the optimizer is not in this build. */
ERR_MUST_USE enum err server_step_choose(
    struct server_step *s, const struct aggregate_spec *spec, uint64_t round);
/* Sets download, before the state is sized; by default there is none. Errors of download_step_choose. */
ERR_MUST_USE enum err server_step_download(struct server_step *s, const struct download_spec *spec,
    uint64_t job_seed, uint64_t round, struct why *why);
/* Multiplies the rate of the schedule by the round's factor (round/policy/scale.h). */
void server_step_scale(struct server_step *s, double factor);
/* Floats of state; 0 if there is none. */
uint64_t server_step_floats(const struct server_step *s);
/* Bytes of the state of a job, whatever its round; 0 if its optimizer or codec is not in this build. */
uint64_t server_step_bytes(const struct aggregate_spec *aggregate,
    const struct download_spec *download, const struct tensor_table *table);
/* Fills the state of a job's first round. ERR_CLOSED once `stop` (may be NULL) is asked for. */
ERR_MUST_USE enum err server_step_start(
    const struct server_step *s, float *state, struct stop *stop);
/* rule_input.centre: the rule's last update. NULL if the rule keeps none. */
const float *server_step_centre(const struct server_step *s);
/* Moves the weights of the tile that begins with element `first` by its update. ERR_NUMERIC if a weight is not finite; data and state
 * are then undefined. */
ERR_MUST_USE enum err server_step_run(
    const struct server_step *s, uint64_t first, size_t count, const float *update);
/* spec->variates: moves elements [first, first + count) of the control variate by the sum of the changes. Errors of control_step. */
ERR_MUST_USE enum err server_step_control(
    const struct server_step *s, uint64_t first, size_t count, const double *sum);

#endif
