#include "records.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "chain.h"
#include "err.h"
#include "manifest.h"
#include "profile.h"

static enum err
take_entry(struct simulate_entry *out, const struct record_detail *d, struct why *why)
{
	struct manifest m;
	enum err e = manifest_decode(&m, d->data, d->len, why);

	if (e)
		return ERR_CORRUPT;
	*out = (struct simulate_entry){.round = m.round,
	    .steps = m.steps,
	    .examples = m.examples,
	    .partial = (m.flags & MANIFEST_PARTIAL) != 0};
	memcpy(out->device, m.device, 32);
	memcpy(out->base, m.base, 32);
	return ERR_OK;
}

static enum err
take_round(struct simulate_records *r, const struct cmd_verify_round *round, struct why *why)
{
	struct simulate_record record = {.round = round->round,
	    .committed = round->committed,
	    .terms = round->terms,
	    .stamp = round->stamp,
	    .count = round->count,
	    .entries = calloc(round->count + 1, sizeof(*record.entries))};
	void *grown = bytes_grow(r->items, r->count, &r->room, sizeof(record));
	enum err e = grown && record.entries ? ERR_OK : ERR_NOMEM;

	if (grown)
		r->items = grown;
	if (!e && round->count != round->reports)
		e = err_set(why, ERR_NOTFOUND,
		    "manifests of round %llu are erased: it cannot be repeated",
		    (unsigned long long)round->round);
	memcpy(record.model, round->model, 32);
	for (size_t i = 0; !e && i < round->count; i++)
		e = take_entry(&record.entries[i], &round->manifests[i], why);
	if (e)
		free(record.entries);
	else
		r->items[r->count++] = record;
	return e;
}

static enum err
add(void *ctx, const struct cmd_verify_entry *entry, struct why *why)
{
	struct simulate_records *r = ctx;
	struct cmd_verify_round round;
	enum err e = cmd_verify_history_add(&r->history, entry, why);

	if (e)
		return e;
	e = cmd_verify_history_round(&round, entry, why);
	if (e == ERR_NOTFOUND || (!e && memcmp(round.job, r->job, 16) != 0))
		return ERR_OK;
	return e ? e : take_round(r, &round, why);
}

enum err
simulate_records_read(
    struct simulate_records *out, const char *dir, const uint8_t job[16], struct why *why)
{
	struct cmd_verify_chain chain;

	*out = (struct simulate_records){.count = 0};
	memcpy(out->job, job, sizeof(out->job));
	enum err e = cmd_verify_chain_read(dir, NULL, add, out, &chain, why);
	if (!e && out->count == 0)
		e = err_set(why, ERR_NOTFOUND,
		    "the records in %s know no round of this job: its document must be that which "
		    "was submitted, to the byte",
		    dir);
	return e;
}

void
simulate_records_deinit(struct simulate_records *r)
{
	for (size_t i = 0; i < r->count; i++)
		free(r->items[i].entries);
	free(r->items);
	cmd_verify_history_deinit(&r->history);
	*r = (struct simulate_records){.count = 0};
}

enum err
simulate_records_name(
    const struct simulate_records *r, struct fleet_profiles *profiles, struct why *why)
{
	enum err e = ERR_OK;

	for (size_t i = 0; !e && i < profiles->count; i++) {
		struct fleet_profile *p = &profiles->items[i];
		if (p->has_id || p->count != 1)
			continue;
		e = cmd_verify_history_device(&r->history, p->name, p->id, why);
		p->has_id = !e;
	}
	return e;
}
