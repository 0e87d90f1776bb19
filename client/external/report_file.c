#include "report_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counts.h"
#include "json.h"
#include "last_words.h"
#include "manifest.h"
#include "wild.h"

/* Then there is no loss, either. */
static bool
counts_nothing(const struct json *doc)
{
	double count;

	return json_double(json_get(json_get(doc, "trained"), "loss_count"), &count) && count == 0;
}

static bool
take_figures(struct finish *f, const struct json *doc)
{
	uint64_t optimizer = MANIFEST_EXTERNAL;

	f->accuracy = NAN;
	if (!json_u64(json_get(doc, "examples"), &f->examples) ||
	    !json_u64(json_get(doc, "steps"), &f->steps) ||
	    (!json_double(json_get(doc, "loss"), &f->loss) && !counts_nothing(doc)))
		return false;
	(void)json_double(json_get(doc, "accuracy"), &f->accuracy);
	(void)json_bool(json_get(doc, "partial"), &f->partial);
	(void)json_u64(json_get(doc, "optimizer"), &optimizer);
	f->normaliser = (double)f->steps;
	(void)json_double(json_get(doc, "normaliser"), &f->normaliser);
	f->optimizer = (uint16_t)optimizer;
	return f->examples >= 1 && f->steps >= 1 && optimizer <= MANIFEST_EXTERNAL;
}

/* A number, or a word for none, at p: is it finite? *end is behind it. */
static bool
is_finite_at(const char *p, const char **end)
{
	char *to;

	/* strtod also takes nan and inf, in any case and with a sign. */
	double v = strtod(p, &to);
	*end = to > p ? to : p + 1;
	return to == p || isfinite(v);
}

/* Behind the text that begins with the quote at p. */
static const char *
behind_text(const char *p)
{
	for (p++; *p && *p != '"'; p++)
		p += *p == '\\' && p[1];
	return *p ? p + 1 : p;
}

/* Programs write figures that are not finite as NaN, inf or 1e999, which JSON does not have. The key before the first of them. */
static const char *
not_finite(char key[64], const char *text)
{
	*key = '\0';
	for (const char *p = text, *end; *p; p = end) {
		if (*p == '"') {
			end = behind_text(p);
			int len = (int)(end - p) - 2;
			snprintf(key, 64, "%.*s", len < 0 ? 0 : len < 63 ? len : 63, p + 1);
		} else if (!is_finite_at(p, &end) && *key) {
			return key;
		}
	}
	return NULL;
}

static enum err
parse(struct report_file *out, struct json **doc, const char *text, size_t len, struct why *why)
{
	char key[64];
	enum err e = json_parse(doc, text, len, why);

	if (!not_finite(key, text))
		return e;
	out->cause = abort_reason_cause(ABORT_NOT_FINITE);
	return err_set(why, ERR_NUMERIC, "report.json: \"%s\" is not finite", key);
}

static bool
is_word(const char *text)
{
	size_t len = text ? strspn(text, "abcdefghijklmnopqrstuvwxyz-") : 0;

	return len > 0 && len < ABORT_WORD_MAX && !text[len];
}

static bool
is_sentence(const char *text)
{
	struct why why;

	return strlen(text) < sizeof(why.text) && !strchr(text, '\n');
}

static enum err
take_abort(struct report_file *out, const struct json *abort, struct why *why)
{
	const char *word = json_string(json_get(abort, "reason"));
	const char *text = json_string(json_get(abort, "text"));

	if (!is_word(word))
		return err_set(why, ERR_INVALID,
		    "report.json: abort.reason is no word of 1 to %d of the letters a to z and -",
		    ABORT_WORD_MAX - 1);
	out->cause = abort_reason_parse(word);
	if (!text || is_sentence(text))
		return err_set(why, ERR_DENIED, "%s", text ? text : word);
	struct last_words said;
	last_words_init(&said, out->said, sizeof(out->said));
	last_words_add(&said, text, strlen(text));
	return err_set(why, ERR_DENIED, "the trainer gave the task back");
}

/* A name of an entry of the directory, and of nothing else. */
static bool
is_entry(const char *name)
{
	return name && *name && strlen(name) < REPORT_FILE_NAME_MAX && !strchr(name, '/') &&
	    strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static enum err
take_after(struct report_file *out, const struct json *after, struct why *why)
{
	if (!after) {
		strcpy(out->after[out->after_count++], "after.safetensors");
		return ERR_OK;
	}
	for (const struct json *item = json_first(after); item; item = json_next(item)) {
		const char *name = json_string(item);
		if (!is_entry(name) || out->after_count == REPORT_FILE_AFTER_MAX)
			break;
		strcpy(out->after[out->after_count++], name);
	}
	if (json_kind(after) == JSON_ARRAY && out->after_count > 0 &&
	    out->after_count == json_count(after))
		return ERR_OK;
	return err_set(why, ERR_INVALID,
	    "report.json: after is no list of 1 to %d files of the task's directory",
	    REPORT_FILE_AFTER_MAX);
}

/* Has its evaluation any of them? A trainer that never counts says nothing wrong, but cannot do the job. */
static bool
has_counts(const char *text, size_t len)
{
	static const char *const keys[] = {"classes", "confusion", "top", "regression", "auc"};
	struct json *doc = NULL;
	bool has = false;

	if (json_parse(&doc, text, len, NULL))
		return false;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		has |= json_get(json_get(doc, "evaluate"), keys[i]) != NULL;
	json_free(doc);
	return has;
}

/* An accuracy is the share of the labels that are told; a program may round it. */
static void
take_counted(struct report_file *out)
{
	const struct report_counted all[] = {out->report.trained, out->report.evaluated};

	finish_count(&out->finish, &out->report, all);
	out->finish.report = NULL;
}

/* "trained", "evaluate" and "metrics" travel on in the signed report, and the counts that the job asks for. */
static enum err
take_report(struct report_file *out, const struct recipe *recipe, const char *text, size_t len,
    struct why *why)
{
	enum err e = messages_report_decode(&out->report, text, len, why);

	if (e)
		return e;
	e = messages_report_counts(
	    &out->counts, &recipe->figures, recipe->data.class_count, text, len, why);
	if (e && !has_counts(text, len))
		out->cause = abort_reason_cause(ABORT_NO_FIGURES);
	out->has_report = !e;
	return e;
}

static enum err
take_evaluation(struct report_file *out, const struct recipe *recipe, const char *text, size_t len,
    struct why *why)
{
	enum err e = take_report(out, recipe, text, len, why);

	out->finish.examples = out->report.eval_examples;
	if (!e)
		take_counted(out);
	if (e || (out->report.has_evaluate && out->report.eval_examples > 0))
		return e;
	counts_free(out->counts);
	out->counts = NULL;
	return err_set(why, ERR_INVALID, "report.json wants evaluate with examples (at least 1)");
}

static enum err
take_work(struct report_file *out, const struct recipe *recipe, const struct json *doc,
    const char *text, size_t len, struct why *why)
{
	if (!take_figures(&out->finish, doc))
		return err_set(why, ERR_INVALID,
		    "report.json wants examples and steps (at least 1) and a finite loss");
	enum err e = take_after(out, json_get(doc, "after"), why);
	if (!e &&
	    (json_get(doc, "trained") || json_get(doc, "evaluate") || json_get(doc, "metrics")))
		e = take_report(out, recipe, text, len, why);
	if (!e)
		take_counted(out);
	return e;
}

enum err
report_file_read(struct report_file *out, int directory, const struct task *task, struct why *why)
{
	char *text = NULL;
	size_t len;
	struct json *doc = NULL;

	memset(out, 0, sizeof(*out));
	enum err e = wild_read(directory, "report.json", REPORT_FILE_MAX, &text, &len, why);
	if (!e)
		e = parse(out, &doc, text, len, why);
	const struct json *abort = json_get(doc, "abort");
	if (!e && abort)
		e = take_abort(out, abort, why);
	else if (!e)
		e = task->kind == TASK_EVALUATE
		    ? take_evaluation(out, &task->recipe, text, len, why)
		    : take_work(out, &task->recipe, doc, text, len, why);
	json_free(doc);
	free(text);
	return e;
}
