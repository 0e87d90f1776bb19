#ifndef SIMULATE_H
#define SIMULATE_H
#include "buf.h"
#include "codec.h"
#include "config.h"
#include "dataset.h"
#include "job.h"
#include "scale.h"
#include "tensor.h"
#include "vectors.h"

/*
 * A fleet in one process: the devices' data and the attackers among them (simulate_fleet.c), what devices do (simulate_device.c)
 * and attackers send (simulate_attack.c), and rounds of a job on them (simulate_round.c). Training, codecs, checks, folding and evaluation are those
 * of the programs; only keys, network and disk are left out.
 */
#define SIMULATE_DEVICES_MAX 4096

enum simulate_attack {
	ATTACK_NONE,
	ATTACK_SIGN, /* -strength x its own delta */
	ATTACK_SCALE, /* strength x its own delta */
	ATTACK_GAUSS, /* noise; each coordinate of the deviation `strength` */
	ATTACK_ALIE, /* mean - z x deviation of the honest, z from the numbers of devices (Baruch et al. 2019) or `strength` */
	ATTACK_IPM, /* -strength x mean of the honest (Xie et al. 2020) */
	ATTACK_MIMIC, /* the delta of one honest device (Karimireddy et al. 2022) */
	ATTACK_LABELS, /* trains on labels 9 - y */
	ATTACK_BACKDOOR, /* half of its examples bear a trigger and the label 0; the delta times `strength` (Bagdasaryan et al. 2020) */
	ATTACK_LIES, /* one of: NaN, infinity, too short, 2^31 examples */
};

struct simulate_device {
	uint8_t id[32];
	struct dataset train, validation;
	bool hostile;
	unsigned number; /* among the hostile */
};

struct simulate_fleet {
	struct simulate_device *devices; /* ascending ids */
	size_t count;
	size_t hostile;
	enum simulate_attack attack;
	double strength;
	struct config *config; /* the coordinator's: data for evaluation */
	/* Backdoor: test examples with the trigger; count 0 without one. */
	struct dataset triggered;
	uint64_t evaluate_every;
};

/* Reads the fleet's document (tests/repro/README.md) and loads its data for a job. The caller frees *out. */
ERR_MUST_USE enum err simulate_fleet_load(
    struct simulate_fleet *out, const char *path, const struct job_spec *job, struct why *why);
void simulate_fleet_deinit(struct simulate_fleet *f);

/* What one device did in a round. */
struct simulate_report {
	const struct simulate_device *device;
	float *delta, *change; /* before encoding; of the control variate, NULL without one */
	uint8_t *payload;
	uint64_t len;
	struct vectors vectors; /* what the payload holds */
	uint64_t examples, steps;
	double loss, norm, normaliser;
	const char *refused; /* the error word of an upload that is not accepted */
	enum err e;
	struct why why;
};

/* Replaces the attackers' deltas and claims, all honest ones being there. */
ERR_MUST_USE enum err simulate_attack_deltas(const struct simulate_fleet *f,
    struct simulate_report *reports, size_t count, uint64_t elements, uint64_t round);
/* Damages the payload of an attacker that lies about its form. */
void simulate_attack_payload(const struct simulate_fleet *f, struct simulate_report *report);
/* The z of ALIE for n devices, f of them hostile. */
double simulate_attack_z(size_t n, size_t f);

/* What a device keeps between rounds. */
struct simulate_memory {
	uint64_t held; /* the last round whose base it fetched, 0 if none */
	float *residual; /* what encoding lost so far; NULL if nothing is kept */
	float *own; /* control variate */
};

/* A job under way. */
struct simulate_round {
	const struct job_spec *job;
	const struct simulate_fleet *fleet;
	unsigned threads;
	char job_hex[33];
	struct tensor_table table;
	uint8_t *data; /* the model's data section */
	float *state; /* NULL if the job keeps none */
	struct buf head; /* of the model's file */
	uint8_t model[32]; /* id */
	uint64_t model_bytes;
	struct evalset *evalset;
	struct simulate_memory *memories; /* of each device */
	uint64_t state_floats;
	struct scale scale;
	/* the last round's figures */
	uint64_t number, reports, refused, bytes_up, bytes_down;
	double norm, train_loss, accuracy, loss, backdoor, seconds;
	bool evaluated;
};

/* One device's training: fills delta, examples, loss. Safe in several threads for different reports. */
void simulate_device_train(struct simulate_round *r, struct simulate_report *p);
/* Encodes its delta, with what earlier payloads of the device lost if the job says so, and checks it as the coordinator does.
 * Likewise. */
void simulate_device_encode(struct simulate_round *r, struct simulate_report *p);

/* Draws the first model. The caller calls simulate_round_deinit in either case. */
ERR_MUST_USE enum err simulate_round_init(struct simulate_round *r, const struct job_spec *job,
    const char *text, size_t len, struct why *why);
void simulate_round_deinit(struct simulate_round *r);
/* The next round. ERR_STATE if fewer than the quorum were accepted, ERR_NUMERIC if the new model is not finite: it then stays
 * what it was. */
ERR_MUST_USE enum err simulate_round_run(struct simulate_round *r, struct why *why);
/* Writes the model as the coordinator would. */
ERR_MUST_USE enum err simulate_round_save(
    const struct simulate_round *r, const char *path, struct why *why);

#endif
