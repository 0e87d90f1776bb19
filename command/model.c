#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "admin.h"
#include "body.h"
#include "buf.h"
#include "cmd.h"
#include "deletion.h"
#include "export.h"
#include "file.h"
#include "find.h"
#include "foreign.h"
#include "hash.h"
#include "hex.h"
#include "job.h"
#include "json.h"
#include "modelfile.h"
#include "network.h"
#include "num.h"
#include "option.h"
#include "personal.h"
#include "print.h"
#include "submit.h"
#include "widen.h"

#define MODEL_MAX ((uint64_t)1 << 40)
#define ROOM_LEFT 20 /* a twentieth of what is free stays so, whatever the coordinator sends */

/* Which of a job's models is meant. */
struct chosen {
	const char *round; /* NULL: none by its number */
	bool best;
};

/* The model that a round made, or the best one. */
static enum err
find_chosen(
    struct cmd_admin *a, const char *word, const struct chosen *c, char id[65], struct why *why)
{
	char job[CMD_FIND_ID], path[128];
	struct json *doc = NULL;
	uint64_t round = 0;

	if (c->round && !num_u64(c->round, JSON_INT_MAX, &round))
		return err_set(why, ERR_INVALID, "--round wants a number");
	enum err e = cmd_find(a, CMD_FIND_JOB, word, job, why);
	if (e)
		return e;
	snprintf(path, sizeof(path), "/v1/jobs/%s", job);
	if (c->round)
		snprintf(
		    path, sizeof(path), "/v1/jobs/%s/rounds/%llu", job, (unsigned long long)round);
	e = cmd_admin_call(a, "GET", path, NULL, &doc, why);
	const char *model = json_string(json_get(c->best ? json_get(doc, "best") : doc, "model"));
	if (!e && !cmd_find_is_id(CMD_FIND_MODEL, model))
		e = err_set(why, ERR_NOTFOUND,
		    c->best ? "job %s has no best model: nothing was measured yet"
			    : "this round of job %s has no model yet",
		    word);
	if (!e)
		memcpy(id, model, 65);
	json_free(doc);
	return e;
}

static bool
one_is_meant(const struct chosen *c)
{
	if (c->round && c->best)
		cmd_print_error("only one of --round and --best");
	return !c->round || !c->best;
}

static enum err
choose(struct cmd_admin *a, const char *word, const struct chosen *c, char id[65], struct why *why)
{
	return c->round || c->best ? find_chosen(a, word, c, id, why)
				   : cmd_find(a, CMD_FIND_WEIGHTS, word, id, why);
}

static uint64_t
room_for(int fd)
{
	struct statvfs v;

	if (fstatvfs(fd, &v) != 0)
		return MODEL_MAX;
	uint64_t room = (uint64_t)v.f_bavail * v.f_frsize;
	room -= room / ROOM_LEFT;
	return room < MODEL_MAX ? room : MODEL_MAX;
}

/* found: a job, or one of its rounds, names the model, so that there was one. */
static enum err
get(struct cmd_admin *a, const char *id, bool found, const char *file, struct why *why)
{
	char temp[PATH_MAX];
	int n = snprintf(temp, sizeof(temp), "%s.part", file);

	if (n < 0 || (size_t)n >= sizeof(temp))
		return err_set(why, ERR_LIMIT, "cannot write %.100s", file);
	int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	enum err e = fd < 0 ? err_errno(why, "create %s", temp) : ERR_OK;
	uint64_t most = e ? 0 : room_for(fd);
	if (!e)
		e = cmd_body_model(a, id, fd, most, why);
	if (e == ERR_LIMIT)
		err_set(why, e,
		    "the model has more than %llu bytes, which is all there is room for beside "
		    "%.100s",
		    (unsigned long long)most, file);
	if (e == ERR_NOTFOUND && found)
		err_set(why, e,
		    "model %.12s is no longer kept ([retention], the job's \"keep\"), or its file "
		    "is "
		    "lost (\"rivuletd check\" there)",
		    id);
	if (!e)
		e = file_commit(fd, temp, file, why);
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && e)
		unlink(temp);
	return e;
}

static int
model_get(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	const char *file = NULL;
	struct chosen chosen = {.round = NULL};
	const struct option_entry table[] = {
	    {"round", 0, "N", "the model that round N of the job made", &chosen.round, NULL},
	    {"best", 0, NULL, "the job's best model by its monitor", NULL, &chosen.best},
	    {"output", 'o', "FILE", "where to (default: beginning of the id, .safetensors)", &file,
		NULL},
	    CMD_ADMIN_OPTIONS(&a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {
	    "model get MODEL|JOB [--round N | --best] [-o FILE] " CMD_ADMIN_USAGE,
	    "Fetches a model by id, or a job's present, best or older model, and checks its hash.",
	    1, 1};
	struct option_words words;
	struct why why = {""};
	char id[65], name[40];
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	if (!one_is_meant(&chosen))
		return CMD_USAGE;
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = choose(&a, words.words[0], &chosen, id, &why);
	if (!e && !file) {
		snprintf(name, sizeof(name), "%.12s.safetensors", id);
		file = name;
	}
	if (!e)
		e = get(&a, id, strcmp(words.words[0], id) != 0, file, &why);
	if (!e && a.json) {
		struct json *doc = json_object();
		json_add_string(doc, "model", id);
		json_add_string(doc, "file", file);
		cmd_print_json(doc);
		json_free(doc);
	} else if (!e) {
		cmd_print_line("%s %s", id, file);
	}
	return cmd_admin_end(&a, e, &why);
}

/* *said: the answer's, the caller's to free, or NULL. */
static enum err
put_file(struct cmd_admin *a, int fd, char id[65], struct json **said, struct why *why)
{
	static const char *const headers[] = {"Content-Type: application/octet-stream", NULL};
	char path[96];
	uint8_t digest[HASH_LEN];
	struct transport_answer answer;
	struct stat st;

	enum err e = hash_file(fd, digest);
	if (e || fstat(fd, &st) != 0 || st.st_size == 0)
		return err_set(why, ERR_INVALID, "the model cannot be read or is empty");
	hex_encode(id, digest, sizeof(digest));
	snprintf(path, sizeof(path), "/v1/models/%s", id);
	const struct session_call call = {.path = path,
	    .attempts = 1,
	    .request = {.method = "PUT",
		.headers = headers,
		.body_fd = fd,
		.body_bytes = (uint64_t)st.st_size}};
	e = session_do(a->session, &call, &answer, why);
	if (!e)
		e = session_refusal(&answer, NULL, why);
	if (!e && json_parse(said, answer.body.data, answer.body.len, NULL))
		*said = NULL;
	transport_answer_deinit(&answer);
	return e;
}

/* What a person should know before training goes on with it. */
static void
say(const char *file, const struct widen_note *n)
{
	if (n->widened > 0)
		cmd_print_error(
		    "%s: %zu tensors become F32, as training wants them; the first is \"%s\", %s "
		    "(--as-is leaves them)",
		    file, n->widened, n->first, tensor_dtype_name(n->was));
	if (n->wrapper)
		cmd_print_error(
		    "%s: all names begin with \"%s\", which no layer's do: save the state_dict of "
		    "model.%.*s instead",
		    file, n->wrapper, (int)strlen(n->wrapper) - 1, n->wrapper);
}

static enum err
put(struct cmd_admin *a, const char *file, bool as_is, struct widen_note *note, char id[65],
    struct why *why)
{
	struct json *said = NULL;
	int fd = -1;
	enum err e = as_is ? ERR_OK : widen_open(&fd, note, file, why);

	if (as_is && (fd = open(file, O_RDONLY | O_CLOEXEC)) < 0)
		e = err_errno(why, "open %s", file);
	if (e)
		return e;
	say(file, note);
	e = put_file(a, fd, id, &said, why);
	cmd_submit_say(said);
	json_free(said);
	close(fd);
	return e;
}

static void
print_put(const char *id, const struct widen_note *note)
{
	struct json *doc = json_object();

	json_add_string(doc, "model", id);
	json_add_u64(doc, "widened", note->widened);
	cmd_print_json(doc);
	json_free(doc);
}

static int
model_put(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	struct widen_note note = {0};
	bool as_is = false;
	const struct option_entry table[] = {
	    {"as-is", 0, NULL, "leave F16, BF16 and F64 as they are", NULL, &as_is},
	    CMD_ADMIN_OPTIONS(&a), {NULL, 0, NULL, NULL, NULL, NULL}};
	const struct option_usage usage = {"model put FILE [--as-is] " CMD_ADMIN_USAGE,
	    "Gives the coordinator a safetensors file, to start jobs from (\"init\"), and prints "
	    "its id. F16, BF16 and F64 become F32.",
	    1, 1};
	struct option_words words;
	struct why why = {""};
	char id[65];
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = cmd_admin_open(&a, &why);
	if (!e)
		e = put(&a, words.words[0], as_is, &note, id, &why);
	if (!e && a.json)
		print_put(id, &note);
	else if (!e)
		cmd_print_line("%s", id);
	return cmd_admin_end(&a, e, &why);
}

static enum err
read_head(const char *file, struct tensor_table *table, struct modelfile_meta *meta, char id[65],
    struct why *why)
{
	uint8_t prefix[MODELFILE_PREFIX], digest[HASH_LEN];
	struct stat st;
	uint64_t data_at;
	char *head = NULL;
	int fd = open(file, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(why, "open %s", file);
	enum err e = fstat(fd, &st) == 0 ? file_pread(fd, prefix, sizeof(prefix), 0) : ERR_IO;
	if (e)
		err_set(why, e = ERR_INVALID, "%s is too short for a model", file);
	else
		e = modelfile_data_at(prefix, (uint64_t)st.st_size, &data_at, why);
	if (!e && !(head = malloc((size_t)data_at)))
		e = err_set(why, ERR_NOMEM, "no memory");
	if (!e)
		e = file_pread(fd, head, (size_t)data_at, 0);
	if (!e)
		e = modelfile_parse(table, meta, head, (size_t)data_at, (uint64_t)st.st_size, why);
	if (!e)
		e = hash_file(fd, digest);
	if (!e)
		hex_encode(id, digest, sizeof(digest));
	free(head);
	close(fd);
	return e;
}

static void
shape_text(char out[CMD_PRINT_CELL_MAX], const struct tensor *t)
{
	size_t n = (size_t)snprintf(out, CMD_PRINT_CELL_MAX, "[");

	for (unsigned i = 0; i < t->dims && n + 24 < CMD_PRINT_CELL_MAX; i++)
		n += (size_t)snprintf(out + n, CMD_PRINT_CELL_MAX - n, "%s%llu", i ? ", " : "",
		    (unsigned long long)t->shape[i]);
	snprintf(out + n, CMD_PRINT_CELL_MAX - n, "]");
}

static void
inspect_table(const struct tensor_table *table, const struct modelfile_meta *meta, const char *id)
{
	static const char *const heads[] = {"TENSOR", "TYPE", "SHAPE", "ELEMENTS"};
	struct cmd_table t;
	char shape[CMD_PRINT_CELL_MAX];
	uint64_t elements = 0;

	cmd_print_line("model    %s", id);
	if (*meta->job)
		cmd_print_line("job      %s", meta->job);
	if (*meta->job)
		printf("round    %llu\n", (unsigned long long)meta->round);
	if (*meta->base)
		cmd_print_line("base     %s", meta->base);
	printf("\n");
	cmd_print_start(&t, heads, 4);
	for (size_t i = 0; i < table->count; i++) {
		shape_text(shape, &table->items[i]);
		cmd_print_cell(&t, "%.79s", table->items[i].name);
		cmd_print_cell(&t, "%s", tensor_dtype_name(table->items[i].dtype));
		cmd_print_cell(&t, "%s", shape);
		cmd_print_cell(&t, "%llu", (unsigned long long)table->items[i].elements);
		elements += table->items[i].elements;
	}
	cmd_print_end(&t);
	printf("\n%zu tensors, %llu elements, %llu bytes\n", table->count,
	    (unsigned long long)elements, (unsigned long long)table->bytes);
}

static void
inspect_json(const struct tensor_table *table, const struct modelfile_meta *meta, const char *id)
{
	struct json *doc = json_object(), *list = json_array();

	json_add_string(doc, "model", id);
	json_add_string(doc, "job", meta->job);
	json_add_u64(doc, "round", meta->round);
	json_add_string(doc, "base", meta->base);
	for (size_t i = 0; i < table->count; i++) {
		const struct tensor *t = &table->items[i];
		struct json *o = json_object(), *shape = json_array();
		json_add_string(o, "name", t->name);
		json_add_string(o, "type", tensor_dtype_name(t->dtype));
		for (unsigned k = 0; k < t->dims; k++)
			json_push(shape, json_new_u64(t->shape[k]));
		json_add(o, "shape", shape);
		json_add_u64(o, "elements", t->elements);
		json_push(list, o);
	}
	json_add(doc, "tensors", list);
	cmd_print_json(doc);
	json_free(doc);
}

static int
model_inspect(int argc, char **argv)
{
	bool json = false;
	const struct option_entry table[] = {
	    {"json", 0, NULL, "print JSON", NULL, &json}, {NULL, 0, NULL, NULL, NULL, NULL}};
	const struct option_usage usage = {"model inspect FILE [--json]",
	    "Shows what a safetensors file holds, or what a file is that a device keeps of a job.",
	    1, 1};
	struct option_words words;
	struct why why = {""};
	struct tensor_table tensors = {.items = NULL};
	struct modelfile_meta meta;
	char id[65];
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e;
	if (cmd_foreign_show(words.words[0], json, &e, &why))
		return e ? cmd_options_fail(e, &why) : CMD_OK;
	e = read_head(words.words[0], &tensors, &meta, id, &why);
	const char *name = e ? cmd_foreign_name(words.words[0]) : NULL;
	if (name)
		e = err_set(&why, ERR_INVALID, "%.120s is %s", words.words[0], name);
	if (!e && json)
		inspect_json(&tensors, &meta, id);
	else if (!e)
		inspect_table(&tensors, &meta, id);
	tensor_table_deinit(&tensors);
	return e ? cmd_options_fail(e, &why) : CMD_OK;
}

/* The recipe of a job on the coordinator. */
static enum err
fetch_recipe(struct cmd_admin *a, const char *word, struct recipe *out, struct why *why)
{
	char job[CMD_FIND_ID], path[96];
	struct json *doc = NULL;
	enum err e = cmd_find(a, CMD_FIND_JOB, word, job, why);

	if (e == ERR_NOTFOUND)
		return err_set(
		    why, e, "no job %.80s; of a model, --job FILE says what it is", word);
	if (e)
		return e;
	snprintf(path, sizeof(path), "/v1/jobs/%s", job);
	e = cmd_admin_call(a, "GET", path, NULL, &doc, why);
	if (!e)
		e = recipe_parse(out, json_get(doc, "document"), false, why);
	json_free(doc);
	return e;
}

struct export_words {
	const char *word, *to, *job_file;
	struct chosen chosen;
};

/* Of the model in a file if there is one of that name, else of one that the coordinator has. */
static enum err
export_model(struct cmd_admin *a, const struct export_words *w, const struct recipe *r,
    const char *name, struct why *why)
{
	char id[65], temp[PATH_MAX];
	int n = snprintf(temp, sizeof(temp), "%s.model", w->to);

	if (access(w->word, F_OK) == 0)
		return cmd_export_onnx(r, name, w->word, w->to, why);
	if (n < 0 || (size_t)n >= sizeof(temp))
		return err_set(why, ERR_LIMIT, "cannot write %.100s", w->to);
	enum err e = choose(a, w->word, &w->chosen, id, why);
	if (!e)
		e = get(a, id, strcmp(w->word, id) != 0, temp, why);
	if (e)
		return e;
	e = cmd_export_onnx(r, name, temp, w->to, why);
	unlink(temp);
	return e;
}

static enum err
export_onnx(struct cmd_admin *a, const struct export_words *w, struct why *why)
{
	struct job_spec job = {.name = ""};
	bool here = access(w->word, F_OK) == 0;

	if (here && !w->job_file)
		return err_set(why, ERR_INVALID,
		    "%.100s is a file: --job FILE says which network it is of", w->word);
	enum err e = here ? ERR_OK : cmd_admin_open(a, why);
	if (!e && w->job_file)
		e = cmd_network_read_job(&job, w->job_file, why);
	else if (!e)
		e = fetch_recipe(a, w->word, &job.recipe, why);
	if (!e)
		e = export_model(a, w, &job.recipe, *job.name ? job.name : w->word, why);
	job_deinit(&job);
	return e;
}

static int
model_export(int argc, char **argv)
{
	struct cmd_admin a = {.socket = NULL};
	struct export_words w = {.word = NULL};
	const struct option_entry table[] = {
	    {"onnx", 0, "FILE", "where to", &w.to, NULL},
	    {"round", 0, "N", "the model that round N of the job made", &w.chosen.round, NULL},
	    {"best", 0, NULL, "the job's best model by its monitor", NULL, &w.chosen.best},
	    {"job", 0, "FILE", "the job document (default: of the job on the coordinator)",
		&w.job_file, NULL},
	    CMD_ADMIN_OPTIONS(&a),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {"model export JOB|MODEL|FILE --onnx FILE [--round N | "
					   "--best] [--job JOBFILE] " CMD_ADMIN_USAGE,
	    "Writes a model of built-in layers as an ONNX file, opset 13, with the job's "
	    "normalisation in front.",
	    1, 1};
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	w.word = words.words[0];
	if (!w.to) {
		cmd_print_error("model export wants --onnx FILE");
		return CMD_USAGE;
	}
	if (!one_is_meant(&w.chosen))
		return CMD_USAGE;
	enum err e = export_onnx(&a, &w, &why);
	if (!e && a.json) {
		struct json *doc = json_object();
		json_add_string(doc, "file", w.to);
		cmd_print_json(doc);
		json_free(doc);
	} else if (!e) {
		cmd_print_line("%s", w.to);
	}
	return cmd_admin_end(&a, e, &why);
}

int
cmd_model_main(int argc, char **argv)
{
	static const struct cmd_verb verbs[] = {
	    {"get", model_get, "fetch one"},
	    {"put", model_put, "give one to the coordinator"},
	    {"inspect", model_inspect, "what a file holds"},
	    {"export", model_export, "as an ONNX file"},
	    {"local", cmd_personal_main, "on a device: a job's, with the device's own tensors"},
	    {"delete", cmd_deletion_models, "an uploaded one that no job needs"},
	    {NULL, NULL, NULL},
	};

	return cmd_admin_verbs("model", verbs, argc, argv);
}
