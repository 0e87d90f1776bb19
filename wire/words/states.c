#include "states.h"

#include "words.h"

#define COUNT(names) (sizeof(names) / sizeof((names)[0]))

static const char *const jobs[] = {
    [JOB_UNKNOWN] = "",
    [JOB_RUNNING] = "running",
    [JOB_PAUSED] = "paused",
    [JOB_DONE] = "done",
    [JOB_STOPPED] = "stopped",
};

static const char *const devices[] = {
    [DEVICE_UNKNOWN] = "",
    [DEVICE_ACTIVE] = "active",
    [DEVICE_SUSPENDED] = "suspended",
    [DEVICE_REVOKED] = "revoked",
    [DEVICE_LEFT] = "left",
};

static const char *const claims[] = {
    [CLAIM_UNKNOWN] = "",
    [CLAIM_NONE] = "none",
    [CLAIM_USED] = "used",
    [CLAIM_TAKEN] = "taken",
    [CLAIM_CONTESTED] = "contested",
    [CLAIM_SETTLED] = "settled",
};

static const char *const rounds[] = {
    [OUTCOME_UNKNOWN] = "",
    [OUTCOME_OPEN] = "open",
    [OUTCOME_COMMITTED] = "committed",
    [OUTCOME_FAILED] = "failed",
    [OUTCOME_EVALUATING] = "evaluating",
    [OUTCOME_EVALUATED] = "evaluated",
};

static size_t
find(const char *const *names, size_t count, const char *name)
{
	size_t at = words_find(names, count, name);

	return at < count ? at : 0;
}

const char *
states_job_name(enum job_state s)
{
	return jobs[s];
}

enum job_state
states_job_find(const char *name)
{
	return (enum job_state)find(jobs, COUNT(jobs), name);
}

bool
states_job_lives(enum job_state s)
{
	return s == JOB_RUNNING || s == JOB_PAUSED;
}

bool
states_job_over(enum job_state s)
{
	return s == JOB_DONE || s == JOB_STOPPED;
}

const char *
states_device_name(enum device_state s)
{
	return devices[s];
}

enum device_state
states_device_find(const char *name)
{
	return (enum device_state)find(devices, COUNT(devices), name);
}

const char *
states_claim_name(enum device_claim s)
{
	return claims[s];
}

enum device_claim
states_claim_find(const char *name)
{
	return (enum device_claim)find(claims, COUNT(claims), name);
}

const char *
states_round_name(enum round_outcome s)
{
	return rounds[s];
}

enum round_outcome
states_round_find(const char *name)
{
	return (enum round_outcome)find(rounds, COUNT(rounds), name);
}

bool
states_round_is_open(enum round_outcome s)
{
	return s == OUTCOME_OPEN || s == OUTCOME_EVALUATING;
}

bool
states_round_evaluates(enum round_outcome s)
{
	return s == OUTCOME_EVALUATING || s == OUTCOME_EVALUATED;
}
