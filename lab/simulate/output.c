#include "output.h"

#include <math.h>
#include <stdlib.h>

#include "guard.h"
#include "hex.h"

#define BARS_MAX 32 /* of a histogram; the last one is of all above, too */
#define DECILES 10

static void
add_figure(struct json *o, const char *key, double v)
{
	if (isfinite(v))
		json_add_double(o, key, v);
}

static void
add_id(struct json *o, const char *key, const uint8_t id[32])
{
	char hex[65];

	hex_encode(hex, id, 32);
	json_add_string(o, key, hex);
}

static void
add_us(struct json *o, const char *key, uint64_t us)
{
	json_add_seconds(o, key, (double)us / 1e6);
}

static const char *
state_of(const struct simulate_line *l)
{
	if (l->abandoned)
		return "abandoned";
	if (l->evaluation)
		return "evaluated";
	return l->round.failed ? "failed" : "committed";
}

static void
add_figures(struct json *o, const struct simulate_round *r)
{
	if (r->evaluated) {
		add_figure(o, "accuracy", r->accuracy);
		add_figure(o, "loss", r->loss);
		add_figure(o, "backdoor", r->backdoor);
	}
	add_figure(o, "own", r->own);
	if (r->measured > 0 && (r->evaluated || isfinite(r->own)))
		json_add_u64(o, "measured", r->measured);
	add_figure(o, "train_loss", r->train_loss);
	add_figure(o, "train_accuracy", r->train_accuracy);
	add_figure(o, "norm", r->norm);
	if (guard_word(r->turn.verdict)[0])
		json_add_string(o, "guard", guard_word(r->turn.verdict));
}

struct json *
simulate_output_line(const struct simulate_line *l)
{
	struct json *o = json_object();

	json_add_u64(o, "round", l->round.number);
	json_add_string(o, "state", state_of(l));
	add_us(o, "time", l->ended_us);
	add_us(o, "seconds", l->ended_us - l->began_us);
	add_figures(o, &l->round);
	json_add_u64(o, "reports", l->round.reports);
	json_add_u64(o, "invited", l->invited);
	json_add_u64(o, "refused", l->refused);
	if (l->word)
		json_add_string(o, "refused_why", l->word);
	json_add_u64(o, "late", l->late);
	json_add_u64(o, "gave_up", l->aborted);
	json_add_u64(o, "reopened", l->reopened);
	json_add_u64(o, "bytes_up", l->bytes_up);
	json_add_u64(o, "bytes_down", l->bytes_down);
	add_us(o, "device_seconds", l->device_us);
	add_us(o, "wasted_seconds", l->wasted_us);
	if (l->stale_max > 0) {
		add_figure(o, "staleness", (double)l->stale_sum / (double)l->round.reports);
		json_add_u64(o, "staleness_max", l->stale_max);
	}
	if (!l->abandoned)
		add_id(o, "model", l->round.model);
	return o;
}

/* --- the summary */

/* counts[i] things have the value i. */
struct histogram {
	const uint64_t *counts;
	size_t count;
};

static uint64_t
total(const struct histogram *h)
{
	uint64_t n = 0;

	for (size_t i = 0; i < h->count; i++)
		n += h->counts[i];
	return n;
}

static size_t
quantile(const struct histogram *h, double share)
{
	uint64_t n = 0, want = (uint64_t)ceil(share * (double)total(h));

	for (size_t i = 0; i < h->count; i++) {
		n += h->counts[i];
		if (n >= want && n > 0)
			return i;
	}
	return 0;
}

static struct json *
print_histogram(const struct histogram *h)
{
	struct json *o = json_object(), *list = json_array();
	double sum = 0, n = (double)total(h);
	uint64_t rest = 0;

	for (size_t i = 0; i < h->count; i++) {
		sum += (double)i * (double)h->counts[i];
		if (i + 1 < BARS_MAX || h->count <= BARS_MAX)
			json_push(list, json_new_u64(h->counts[i]));
		else
			rest += h->counts[i];
	}
	if (rest > 0)
		json_push(list, json_new_u64(rest));
	if (n > 0)
		add_figure(o, "mean", sum / n);
	json_add_u64(o, "p50", quantile(h, 0.5));
	json_add_u64(o, "p99", quantile(h, 0.99));
	json_add_u64(o, "max", h->count ? h->count - 1 : 0);
	json_add(o, "counts", list);
	return o;
}

struct speed {
	double speed;
	uint32_t folded;
};

static int
compare_speeds(const void *a, const void *b)
{
	const struct speed *x = a, *y = b;

	return (x->speed > y->speed) - (x->speed < y->speed);
}

/* Deltas per device that made models, the slowest tenth of the devices first. */
static void
add_deciles(struct json *o, const struct simulate_result *r, const struct fleet *f)
{
	struct speed *all = calloc(f->count, sizeof(*all));
	struct json *list = json_array();

	for (size_t i = 0; all && i < f->count; i++)
		all[i] = (struct speed){fleet_speed(f, i), r->folded[i]};
	if (all)
		qsort(all, f->count, sizeof(*all), compare_speeds);
	bool alike = !all || !(all[0].speed < all[f->count - 1].speed);
	for (size_t d = 0; !alike && f->count >= DECILES && d < DECILES; d++) {
		size_t from = f->count * d / DECILES, to = f->count * (d + 1) / DECILES;
		double sum = 0;
		for (size_t i = from; i < to; i++)
			sum += all[i].folded;
		json_push(list, json_new_double(sum / (double)(to - from)));
	}
	free(all);
	if (alike)
		json_free(list);
	else
		json_add(o, "by_speed", list);
}

static struct json *
participation(const struct simulate_result *r, const struct fleet *f)
{
	struct histogram h = {.count = 0};
	uint64_t *counts;

	for (size_t i = 0; i < f->count; i++)
		h.count = r->folded[i] >= h.count ? (size_t)r->folded[i] + 1 : h.count;
	counts = calloc(h.count + 1, sizeof(*counts));
	if (!counts)
		return NULL;
	for (size_t i = 0; i < f->count; i++)
		counts[r->folded[i]]++;
	h.counts = counts;
	struct json *o = print_histogram(&h);
	json_add_u64(o, "devices", f->count);
	json_add_u64(o, "never", counts[0]);
	add_deciles(o, r, f);
	free(counts);
	return o;
}

static const char *
end_word(enum simulate_end end)
{
	static const char *const words[] = {[SIMULATE_DONE] = "done",
	    [SIMULATE_STOPPED] = "stopped",
	    [SIMULATE_PAUSED] = "paused",
	    [SIMULATE_STUCK] = "stuck",
	    [SIMULATE_LIMIT] = "limit",
	    [SIMULATE_BROKEN_OFF] = "broken-off"};

	return words[end];
}

static void
add_counts(struct json *o, const struct simulate_result *r)
{
	json_add_u64(o, "rounds", r->rounds);
	json_add_u64(o, "failed", r->failed);
	json_add_u64(o, "reopened", r->reopened);
	json_add_u64(o, "reports", r->reports);
	json_add_u64(o, "refused", r->refused);
	json_add_u64(o, "late", r->late);
	json_add_u64(o, "gave_up", r->aborted);
	if (r->first.text[0])
		json_add_string(o, "gave_up_why", r->first.text);
	json_add_u64(o, "bytes_up", r->bytes_up);
	json_add_u64(o, "bytes_down", r->bytes_down);
	add_us(o, "device_seconds", r->device_us);
	add_us(o, "wasted_seconds", r->wasted_us);
}

struct json *
simulate_output_summary(const struct simulate_result *r, const struct fleet *fleet)
{
	struct json *o = json_object(), *top = json_object();
	const struct histogram staleness = {r->staleness, r->staleness_count};

	json_add_string(o, "end", end_word(r->end));
	json_add_string(o, "reason", r->reason);
	add_us(o, "time", r->us);
	if (r->reached) {
		add_us(o, "time_to_target", r->reached_us);
		json_add_u64(o, "rounds_to_target", r->reached_round);
	}
	if (r->rounds > 0)
		add_us(o, "time_per_round", r->us / r->rounds);
	add_figure(o, "accuracy", r->last_accuracy);
	add_figure(o, "loss", r->last_loss);
	add_figure(o, "best_accuracy", r->best_accuracy);
	add_figure(o, "best_loss", r->best_loss);
	add_counts(o, r);
	json_add(o, "staleness", print_histogram(&staleness));
	json_add(o, "participation", participation(r, fleet));
	add_id(o, "model", r->model);
	json_add(top, "summary", o);
	return top;
}
