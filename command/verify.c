#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "cmd.h"
#include "collect.h"
#include "file.h"
#include "hex.h"
#include "json.h"
#include "num.h"
#include "print.h"
#include "refold.h"
#include "session.h"

/* --- fetch */

static int
fetch(struct cmd_admin *a, const char *dir, bool deltas)
{
	struct cmd_verify_fetched got = {.entries = 0};
	struct why why = {""};

	enum err e = cmd_admin_open(a, &why);
	if (!e)
		e = cmd_verify_fetch(a, dir, deltas, &got, &why);
	if (!e && a->json) {
		struct json *v = json_object();
		json_add_u64(v, "entries", got.entries);
		json_add_u64(v, "models", got.models);
		json_add_u64(v, "deltas", got.deltas);
		json_add_u64(v, "missing_deltas", got.missing);
		cmd_print_json(v);
		json_free(v);
	} else if (!e) {
		cmd_print_line("%" PRIu64 " entries, %" PRIu64 " models and %" PRIu64
			       " deltas in %s; %" PRIu64 " deltas are not kept",
		    got.entries, got.models, got.deltas, dir, got.missing);
	}
	return cmd_admin_end(a, e, &why);
}

/* --- verify */

struct verify {
	const char *dir, *ca, *device, *out_dir, *contains;
	bool json;
	uint8_t without[32];
	uint64_t pinned; /* --contains: seq, and the hash it must have */
	uint8_t pin[32];
	struct cmd_verify_chain chain;
	struct cmd_verify_history history;
	struct cmd_verify_fold *fold;
	uint64_t same, skipped, touched, erased, replayed;
	struct why first_skipped; /* which round, and why */
	struct json *rounds; /* that the device touched */
};

static enum err
read_pin(struct verify *v, struct why *why)
{
	char seq[24];
	const char *colon = v->contains ? strchr(v->contains, ':') : NULL;
	size_t len = colon ? (size_t)(colon - v->contains) : 0;

	if (!v->contains)
		return ERR_OK;
	snprintf(seq, sizeof(seq), "%.*s", (int)(len < 23 ? len : 0), v->contains);
	if (!colon || !num_u64(seq, UINT64_MAX, &v->pinned) || v->pinned == 0 ||
	    !hex_decode(v->pin, sizeof(v->pin), colon + 1, strlen(colon + 1)))
		return err_set(why, ERR_INVALID, "--contains takes SEQ:HASH, as \"head\" shows it");
	return ERR_OK;
}

static enum err
first_pass(void *ctx, const struct cmd_verify_entry *e, struct why *why)
{
	struct verify *v = ctx;

	if (e->link.seq == v->pinned && memcmp(e->hash, v->pin, sizeof(v->pin)) != 0)
		return err_set(why, ERR_CORRUPT, "it has not the hash that --contains gives");
	return cmd_verify_history_add(&v->history, e, why);
}

static void
note_touched(struct verify *v, const struct cmd_verify_round *r, const struct cmd_verify_outcome *o)
{
	struct json *n = json_object();
	char hex[65];

	hex_encode(hex, r->job, 16);
	json_add_string(n, "job", hex);
	json_add_u64(n, "round", r->round);
	json_add_u64(n, "reports", r->reports);
	hex_encode(hex, r->model, 32);
	json_add_string(n, "model", hex);
	hex_encode(hex, o->model, 32);
	if (o->changed)
		json_add_string(n, "without", hex);
	else
		json_add_string(n, "why", o->changed_why.text);
	json_push(v->rounds, n);
}

static enum err
second_pass(void *ctx, const struct cmd_verify_entry *e, struct why *why)
{
	struct verify *v = ctx;
	struct cmd_verify_outcome o;
	struct cmd_verify_round r;
	char hex[33];

	enum err result = cmd_verify_history_round(&r, e, why);
	if (result == ERR_NOTFOUND)
		return ERR_OK;
	if (!result)
		result = cmd_verify_fold_round(v->fold, &r, &o, why);
	if (result)
		return result == ERR_NOTFOUND ? ERR_IO : result;
	v->same += o.result == CMD_VERIFY_SAME;
	if (r.committed && o.result == CMD_VERIFY_SKIPPED && v->skipped++ == 0) {
		hex_encode(hex, r.job, 16);
		err_set(&v->first_skipped, ERR_OK, "round %" PRIu64 " of job %.12s: %s", r.round,
		    hex, o.why.text);
	}
	v->touched += o.touched;
	v->erased += v->device && o.erased;
	v->replayed += o.changed;
	if (o.touched)
		note_touched(v, &r, &o);
	return ERR_OK;
}

static enum err
check(struct verify *v, struct why *why)
{
	enum err e = read_pin(v, why);

	if (e)
		return e;
	e = cmd_verify_chain_read(v->dir, v->ca, first_pass, v, &v->chain, why);
	if (!e && v->pinned > v->chain.entries) {
		v->chain.broken = v->chain.entries + 1;
		e = err_set(why, ERR_CORRUPT, "the chain ends before entry %" PRIu64, v->pinned);
	}
	if (!e && v->device)
		e = cmd_verify_history_device(&v->history, v->device, v->without, why);
	if (!e && v->out_dir)
		e = file_mkdirs(v->out_dir, 0755, why);
	if (e)
		return e;
	v->fold =
	    cmd_verify_fold_new(&v->history, v->dir, v->device ? v->without : NULL, v->out_dir);
	v->rounds = json_array();
	e = v->fold ? cmd_verify_chain_read(v->dir, v->ca, second_pass, v, &v->chain, why)
		    : ERR_NOMEM;
	if (!e && v->out_dir && v->touched > 0 && v->replayed == 0)
		e = err_set(why, ERR_NOTFOUND,
		    "no round can be folded without the device: the deltas or models are not here");
	return e;
}

/* --- what is printed */

/* What was not folded says nothing of its bits. */
static void
print_folded(const struct verify *v)
{
	if (v->history.committed == 0)
		printf("folded again: none, for no round was committed\n");
	else if (v->same == 0)
		cmd_print_line("folded again: none of %" PRIu64 " rounds, so nothing is said of "
			       "their models%s%s",
		    v->history.committed, v->skipped ? "; not " : "", v->first_skipped.text);
	else
		cmd_print_line("folded again: %" PRIu64 " of %" PRIu64 ", the same to the bit%s%s",
		    v->same, v->history.committed, v->skipped ? "; not " : "",
		    v->first_skipped.text);
}

static void
print_chain(const struct verify *v)
{
	char first[CMD_PRINT_TIME_MAX], last[CMD_PRINT_TIME_MAX], hex[65];

	cmd_print_time(first, (double)v->chain.first_ms / 1000);
	cmd_print_time(last, (double)v->chain.last_ms / 1000);
	cmd_print_line("chain: %" PRIu64
		       " entries from %s to %s: order, signatures and hashes are good",
	    v->chain.entries, first, last);
	hex_encode(hex, v->chain.head, 32);
	cmd_print_line("head: %" PRIu64 ":%s", v->chain.entries, hex);
	hex_encode(hex, v->chain.ca, 32);
	cmd_print_line("ca: %s", hex);
	printf(
	    "details: %" PRIu64 " good, %" PRIu64 " erased\n", v->chain.details, v->chain.erased);
	printf("manifests: %" PRIu64 " signed by their devices, %" PRIu64
	       " of devices whose keys are erased or older than the log\n",
	    v->history.manifests - v->history.unsigned_manifests, v->history.unsigned_manifests);
	printf("rounds: %" PRIu64 " committed, %" PRIu64 " failed, in %zu jobs\n",
	    v->history.committed, v->history.failed, v->history.job_count);
	print_folded(v);
}

static void
print_without(const struct verify *v)
{
	char hex[65];

	hex_encode(hex, v->without, 32);
	cmd_print_part("device %s touched %" PRIu64 " rounds", hex, v->touched);
	if (v->erased)
		printf("; in %" PRIu64 " rounds manifests are erased, it may have been there, too",
		    v->erased);
	printf("\n");
	for (const struct json *r = json_first(v->rounds); r; r = json_next(r)) {
		uint64_t round = 0;
		const char *without = json_string(json_get(r, "without"));
		(void)json_u64(json_get(r, "round"), &round);
		cmd_print_line("job %s round %" PRIu64 ": model %s%s%s",
		    json_string(json_get(r, "job")), round, json_string(json_get(r, "model")),
		    without ? ", without it " : "; cannot be folded without it: ",
		    without ? without : json_string(json_get(r, "why")));
	}
}

static struct json *
as_json(struct verify *v, enum err e, const struct why *why)
{
	struct json *j = json_object(), *rounds = json_object();
	char hex[65];

	json_add_bool(j, "ok", !e);
	if (e)
		json_add_string(j, "why", why->text);
	if (v->chain.broken)
		json_add_u64(j, "broken", v->chain.broken);
	json_add_u64(j, "entries", v->chain.entries);
	hex_encode(hex, v->chain.head, 32);
	json_add_string(j, "head", hex);
	hex_encode(hex, v->chain.ca, 32);
	json_add_string(j, "ca", hex);
	json_add_u64(j, "details", v->chain.details);
	json_add_u64(j, "erased", v->chain.erased);
	json_add_u64(j, "manifests", v->history.manifests);
	json_add_u64(j, "manifests_without_key", v->history.unsigned_manifests);
	json_add_u64(rounds, "committed", v->history.committed);
	json_add_u64(rounds, "failed", v->history.failed);
	json_add_u64(rounds, "evaluated", v->history.evaluated);
	json_add_u64(rounds, "folded", v->same);
	json_add_u64(rounds, "not_folded", v->skipped);
	json_add(j, "rounds", rounds);
	if (v->device && v->rounds) {
		json_add(j, "touched", v->rounds);
		v->rounds = NULL;
	}
	return j;
}

static int
finish(struct verify *v, enum err e, struct why *why)
{
	struct why broken;

	if (e && v->chain.broken)
		err_set(&broken, e, "entry %" PRIu64 " is the first that does not check: %s",
		    v->chain.broken, why->text);
	else
		broken = *why;
	if (v->json) {
		struct json *j = as_json(v, e, why);
		cmd_print_json(j);
		json_free(j);
	} else if (!e) {
		print_chain(v);
		if (v->device)
			print_without(v);
	}
	json_free(v->rounds);
	cmd_verify_fold_free(v->fold);
	cmd_verify_history_deinit(&v->history);
	return e ? cmd_options_fail(e, &broken) : CMD_OK;
}

int
cmd_verify_main(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	struct verify v = {.dir = NULL};
	bool no_deltas = false;
	const struct option_entry table[] = {
	    {"contains", 0, "SEQ:HASH", "the chain must hold this entry: a head seen before",
		&v.contains, NULL},
	    {"without", 0, "DEVICE", "list the rounds this device touched; fold them without it",
		&v.device, NULL},
	    {"output", 'o', "DIR", "where to write the models without the device", &v.out_dir,
		NULL},
	    {"no-deltas", 0, NULL, "fetch: the chain alone", NULL, &no_deltas},
	    CMD_ADMIN_OPTIONS(&a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {"verify fetch DIR [--no-deltas] " CMD_ADMIN_USAGE
					   "\n       rivulet verify DIR [--ca FILE] [--contains "
					   "SEQ:HASH] [--without DEVICE [-o DIR]] [--json]",
	    "Fetches the audit log into a directory, or checks such a directory without any "
	    "network: order, signatures,\nhashes, and rounds folded again from kept deltas. The "
	    "first entry that does not check is named, exit code 7.",
	    1, 2};
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	bool fetching = strcmp(words.words[0], "fetch") == 0 && words.count == 2;
	if (words.count != (fetching ? 2u : 1u) || (v.out_dir && !v.device)) {
		fprintf(stderr, "usage: rivulet %s\n", usage.usage);
		return CMD_USAGE;
	}
	if (fetching)
		return fetch(&a, words.words[1], !no_deltas);
	v.dir = words.words[0];
	v.ca = a.ca;
	v.json = a.json;
	enum err e = check(&v, &why);
	return finish(&v, e, &why);
}
