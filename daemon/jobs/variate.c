#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "hex.h"
#include "job_struct.h"

enum err
jobs_variate_init(struct job *j)
{
	if (j->work->spec.aggregate.variates == 0)
		return ERR_OK;
	j->members = calloc(j->work->spec.aggregate.variates, sizeof(*j->members));
	return j->members ? ERR_OK : ERR_NOMEM;
}

/* Where the device is, or would be. */
static size_t
member_at(const struct job *j, const uint8_t device[32])
{
	return bytes_place(j->members, j->member_count, sizeof(*j->members), device, 32);
}

static struct engine_member *
find_member(const struct job *j, const uint8_t device[32])
{
	size_t at = member_at(j, device);

	return at < j->member_count && memcmp(j->members[at].device, device, 32) == 0
	    ? &j->members[at]
	    : NULL;
}

/* ERR_CORRUPT if the job has all its devices already. */
static enum err
count_member(void *job, const uint8_t device[32], uint64_t round)
{
	struct job *j = job;
	struct engine_member *have = find_member(j, device);

	if (have) {
		have->round = round;
		return ERR_OK;
	}
	if (j->member_count == j->work->spec.aggregate.variates)
		return ERR_CORRUPT;
	size_t at = member_at(j, device);
	memmove(&j->members[at + 1], &j->members[at], (j->member_count - at) * sizeof(*j->members));
	memcpy(j->members[at].device, device, 32);
	j->members[at].round = round;
	j->member_count++;
	return ERR_OK;
}

enum err
jobs_variate_load(struct store_db *db, struct job *j)
{
	if (!j->members)
		return ERR_OK;
	return store_accept_last(db, j->id, count_member, j);
}

void
jobs_variate_count(struct job *j, uint64_t round)
{
	for (size_t i = 0; j->members && i < j->invite_count; i++)
		if (j->invites[i].state == INVITE_ACCEPTED)
			(void)!count_member(j, j->invites[i].device, round);
}

bool
jobs_variate_full(const struct job *j, const uint8_t device[32])
{
	size_t used = j->member_count;

	if (!j->members || find_member(j, device))
		return false;
	/* With the lock held: what it costs to ask again and again. */
	if (used >= j->work->spec.aggregate.variates)
		return true;
	for (size_t i = 0; i < j->invite_count; i++) {
		const struct invite *v = &j->invites[i];
		if (v->state >= INVITE_ABORTED || find_member(j, v->device))
			continue;
		if (memcmp(v->device, device, 32) == 0)
			return false;
		used++;
	}
	for (size_t i = 0; i < j->candidate_count; i++) {
		if (memcmp(j->candidates[i].device, device, 32) == 0)
			return false;
		used += find_member(j, j->candidates[i].device) == NULL;
	}
	return used >= j->work->spec.aggregate.variates;
}

enum problem_type
jobs_variate_claim(const struct job *j, const uint8_t device[32], struct why *why)
{
	if (!jobs_variate_full(j, device))
		return PROBLEM_NONE;
	err_set(why, ERR_STATE, "the job has all its devices");
	return PROBLEM_WRONG_STATE;
}

void
jobs_variate_fill(const struct job *j, const uint8_t device[32], struct task *out)
{
	static const uint8_t none[32];
	const struct engine_member *have = j->members ? find_member(j, device) : NULL;

	if (!j->members)
		return;
	out->counted = have ? have->round : 0;
	if (memcmp(j->row.optimizer_state, none, 32) == 0)
		return;
	hex_encode(out->state, j->row.optimizer_state, 32);
	out->state_bytes = sizes_state(j);
}

bool
jobs_variate_counts(const struct job *j, const uint8_t device[32])
{
	if (!j->members || !states_job_lives(j->state))
		return false;
	/* Of a round that is being written as well. */
	for (size_t i = 0; i < j->invite_count; i++)
		if (j->invites[i].state == INVITE_ACCEPTED &&
		    memcmp(j->invites[i].device, device, 32) == 0)
			return true;
	return find_member(j, device) != NULL;
}
