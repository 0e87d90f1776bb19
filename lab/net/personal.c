#include "personal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache.h"
#include "cmd.h"
#include "err.h"
#include "file.h"
#include "hash.h"
#include "hex.h"
#include "identity.h"
#include "job.h"
#include "kept.h"
#include "model_head.h"
#include "network.h"
#include "option.h"
#include "options.h"
#include "preset.h"
#include "print.h"
#include "session.h"

#define JOBS_MAX 256
#define ID_HEX 32
#define BLOCK ((size_t)256 << 10)
#define SUFFIX ".weights"

struct personal {
	const char *word, *home_word, *base_word, *job_file, *to; /* NULL: not said */
	bool json;
	char home[PATH_MAX];
	char jobs[JOBS_MAX][ID_HEX + 1]; /* whose local tensors are here */
	size_t job_count;
	char job[ID_HEX + 1], name[RECIPE_NAME_MAX];
	struct recipe recipe;
	struct session *session; /* NULL: not open yet */
	/* The model that the rest comes from. */
	char base[PATH_MAX], base_id[65];
	struct modelfile_meta meta;
	struct model_head head;
	size_t tensors; /* that are the device's own */
	uint64_t bytes;
};

/* --- which job */

static enum err
list_jobs(struct personal *p, struct why *why)
{
	char path[PATH_MAX];
	struct dirent *ent;
	enum err e = identity_path(path, p->home, "local", why);
	DIR *d = e ? NULL : opendir(path);

	while (d && p->job_count < JOBS_MAX && (ent = readdir(d))) {
		if (strspn(ent->d_name, "0123456789abcdef") != ID_HEX ||
		    strcmp(ent->d_name + ID_HEX, SUFFIX) != 0)
			continue;
		memcpy(p->jobs[p->job_count], ent->d_name, ID_HEX);
		p->jobs[p->job_count++][ID_HEX] = '\0';
	}
	if (d)
		closedir(d);
	if (!e && p->job_count == 0)
		e = err_set(why, ERR_NOTFOUND,
		    "%.150s/local holds no tensors: this device has trained no job with tensors of "
		    "role "
		    "\"local\" yet, or another home has",
		    p->home);
	return e;
}

/* By an id or its beginning; "" if the word is none of these. */
static enum err
find_id(struct personal *p, struct why *why)
{
	size_t len = strlen(p->word), fits = 0;

	for (size_t i = 0; i < p->job_count && len > 0; i++)
		if (strncmp(p->jobs[i], p->word, len) == 0) {
			memcpy(p->job, p->jobs[i], sizeof(p->job));
			fits++;
		}
	if (fits <= 1)
		return ERR_OK;
	return err_set(why, ERR_INVALID, "%zu jobs fit \"%.40s\"; give the id", fits, p->word);
}

static enum err
open_session(struct personal *p, struct why *why)
{
	const struct session_options options = {.home = p->home};
	struct why inner = {""};

	if (p->session)
		return ERR_OK;
	enum err e = session_open(&p->session, &options, &inner);
	return e
	    ? err_set(why, e, "%.180s: --job FILE gives the job's document without a coordinator",
		  inner.text)
	    : ERR_OK;
}

/* A job's document from the coordinator, as its id says it is. */
static enum err
fetch_document(struct personal *p, const char *job, struct json **out, struct why *why)
{
	struct transport_answer answer;
	uint8_t digest[HASH_LEN], id[ID_HEX / 2];
	char path[64];
	enum err e = open_session(p, why);

	if (e)
		return e;
	snprintf(path, sizeof(path), "/v1/jobs/%.32s/document", job);
	const struct session_call call = {.path = path,
	    .attempts = 1,
	    .request = {.method = "GET", .answer_max = JOB_DOCUMENT_MAX}};
	struct why inner = {""};
	e = session_do(p->session, &call, &answer, &inner);
	if (!e)
		e = session_refusal(&answer, NULL, &inner);
	if (e)
		err_set(why, e,
		    "the document of job %.12s: %.120s; --job FILE gives it without a coordinator",
		    job, inner.text);
	hash_sha256(digest, buf_str(&answer.body), answer.body.len);
	if (!e && (!hex_decode(id, sizeof(id), job, ID_HEX) || memcmp(digest, id, sizeof(id)) != 0))
		e = err_set(why, ERR_CORRUPT,
		    "the coordinator's document of job %.12s has another hash", job);
	if (!e)
		e = json_parse(out, buf_str(&answer.body), answer.body.len, why);
	transport_answer_deinit(&answer);
	return e;
}

static enum err
take_document(struct personal *p, const struct json *doc, struct why *why)
{
	const char *name = json_string(json_get(doc, "name"));

	snprintf(p->name, sizeof(p->name), "%s", name ? name : "");
	return recipe_parse(&p->recipe, doc, false, why);
}

/* Among the jobs whose tensors are here. */
static enum err
find_name(struct personal *p, struct why *why)
{
	size_t fits = 0;
	enum err e = ERR_OK;

	for (size_t i = 0; !e && i < p->job_count; i++) {
		struct json *doc = NULL;
		e = fetch_document(p, p->jobs[i], &doc, why);
		const char *name = json_string(json_get(doc, "name"));
		/* A job that was deleted there is not the one that is meant. */
		if (e == ERR_NOTFOUND)
			e = ERR_OK;
		if (!e && name && strcmp(name, p->word) == 0) {
			memcpy(p->job, p->jobs[i], sizeof(p->job));
			fits++;
		}
		json_free(doc);
	}
	if (!e && fits == 0)
		e = err_set(why, ERR_NOTFOUND,
		    "none of the %zu jobs whose local tensors are in %.100s/local is called "
		    "\"%.60s\"",
		    p->job_count, p->home, p->word);
	if (!e && fits > 1)
		e = err_set(
		    why, ERR_INVALID, "%zu jobs are called \"%.60s\"; give the id", fits, p->word);
	return e;
}

/* Without a coordinator: the document says the name, and where it is as it was submitted, the id. */
static enum err
find_in_file(struct personal *p, struct why *why)
{
	struct job_spec job;
	uint8_t digest[HASH_LEN];
	char *text, id[2 * HASH_LEN + 1];
	size_t len;
	enum err e = cmd_network_read_job(&job, p->job_file, why);

	if (e)
		return e;
	p->recipe = job.recipe;
	memset(&job.recipe, 0, sizeof(job.recipe));
	snprintf(p->name, sizeof(p->name), "%s", job.name);
	job_deinit(&job);
	if (*p->job)
		return ERR_OK;
	e = preset_read(p->job_file, NULL, &text, &len, why);
	if (e)
		return e;
	hash_sha256(digest, text, len);
	free(text);
	hex_encode(id, digest, sizeof(digest));
	id[ID_HEX] = '\0';
	for (size_t i = 0; i < p->job_count; i++)
		if (strcmp(p->jobs[i], id) == 0)
			memcpy(p->job, id, sizeof(p->job));
	if (!*p->job && p->job_count == 1 && strcmp(p->name, p->word) == 0)
		memcpy(p->job, p->jobs[0], sizeof(p->job));
	return *p->job
	    ? ERR_OK
	    : err_set(why, ERR_NOTFOUND,
		  "no job \"%.40s\" in %.100s/local: give the id, as a file there is called",
		  p->word, p->home);
}

static enum err
find_job(struct personal *p, struct why *why)
{
	struct json *doc = NULL;
	enum err e = list_jobs(p, why);

	if (!e)
		e = find_id(p, why);
	if (e || p->job_file)
		return e ? e : find_in_file(p, why);
	if (!*p->job)
		e = find_name(p, why);
	if (!e)
		e = fetch_document(p, p->job, &doc, why);
	if (!e)
		e = take_document(p, doc, why);
	json_free(doc);
	return e;
}

/* --- which model */

static enum err
read_meta(const char *path, struct modelfile_meta *meta, struct why *why)
{
	struct tensor_table table = {.count = 0};
	struct why inner = {""};
	uint8_t prefix[MODELFILE_PREFIX];
	uint64_t data_at = 0;
	char *head = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);

	if (size < 0) {
		enum err failed = err_errno(why, "open %s", path);
		if (fd >= 0)
			close(fd);
		return failed;
	}
	enum err e = file_pread(fd, prefix, sizeof(prefix), 0);
	if (e)
		err_set(&inner, e = ERR_INVALID, "too short for a model");
	else
		e = modelfile_data_at(prefix, (uint64_t)size, &data_at, &inner);
	if (!e && !(head = malloc((size_t)data_at)))
		e = err_set(&inner, ERR_NOMEM, "no memory for a model's header");
	if (!e && (e = file_pread(fd, head, (size_t)data_at, 0)))
		err_set(&inner, e, "its header cannot be read");
	if (!e)
		e = modelfile_parse(&table, meta, head, (size_t)data_at, (uint64_t)size, &inner);
	if (e)
		err_set(why, e, "%.150s: %.100s", path, inner.text);
	tensor_table_deinit(&table);
	free(head);
	close(fd);
	return e;
}

/* The job's newest among the models that the device holds. */
static enum err
find_base(struct personal *p, struct why *why)
{
	char(*ids)[CACHE_ID_HEX] = calloc(CACHE_FILES_MAX, sizeof(*ids));
	struct cache cache;
	enum err e = ids ? cache_init(&cache, p->home, "models", UINT64_MAX, why) : ERR_NOMEM;
	size_t n = e ? 0 : cache_list(&cache, ids, CACHE_FILES_MAX);

	for (size_t i = 0; i < n; i++) {
		struct modelfile_meta meta;
		char path[PATH_MAX];
		int len = snprintf(path, sizeof(path), "%s/%s.safetensors", cache.dir, ids[i]);
		if (len < 0 || (size_t)len >= sizeof(path) || read_meta(path, &meta, NULL) ||
		    strcmp(meta.job, p->job) != 0 || (*p->base && meta.round < p->meta.round))
			continue;
		memcpy(p->base, path, (size_t)len + 1);
		p->meta = meta;
	}
	free(ids);
	if (!e && !*p->base)
		e = err_set(why, ERR_NOTFOUND,
		    "%.100s/models holds no model of job %.12s any more: --base FILE gives one "
		    "(\"rivulet "
		    "model get\" fetches it)",
		    p->home, p->job);
	return e;
}

static enum err
open_base(struct personal *p, int *fd, struct why *why)
{
	uint8_t digest[HASH_LEN];
	struct why inner = {""};

	*fd = open(p->base, O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return err_errno(why, "open %s", p->base);
	enum err e = model_head_read(&p->head, *fd, p->recipe.rules, p->recipe.rule_count, &inner);
	if (e)
		return err_set(why, e, "%.150s: %.100s", p->base, inner.text);
	e = hash_file(*fd, digest);
	if (e)
		return err_set(why, e, "%s cannot be read", p->base);
	hex_encode(p->base_id, digest, sizeof(digest));
	return ERR_OK;
}

/* --- the two as one */

/* len bytes of the base's file, or of the device's own tensors. */
struct piece {
	int fd;
	uint64_t at, len;
};

static enum err
copy(int to, uint64_t *to_at, const struct piece *p, uint8_t *block, struct why *why)
{
	for (uint64_t done = 0; done < p->len; done += BLOCK) {
		size_t n = p->len - done < BLOCK ? (size_t)(p->len - done) : BLOCK;
		if (file_pread(p->fd, block, n, p->at + done))
			return err_set(why, ERR_IO, "the model cannot be read");
		if (file_pwrite(to, block, n, *to_at))
			return err_errno(why, "write the model");
		*to_at += n;
	}
	return ERR_OK;
}

static enum err
write_tensors(struct personal *p, int base, const struct kept *own, int to, uint64_t at,
    uint8_t *block, struct why *why)
{
	uint64_t own_at = devicefile_head(DEVICEFILE_LOCAL);
	enum err e = ERR_OK;

	for (size_t i = 0; !e && i < p->head.table.count; i++) {
		const struct tensor *t = &p->head.table.items[i];
		struct piece piece = {base, p->head.data_at + t->begin, t->end - t->begin};
		if (t->role == TENSOR_LOCAL) {
			piece = (struct piece){own->fd, own_at, piece.len};
			own_at += piece.len;
		}
		e = copy(to, &at, &piece, block, why);
	}
	return e;
}

static enum err
write_file(struct personal *p, int base, const struct kept *own, struct why *why)
{
	struct modelfile_meta meta = p->meta;
	char temp[PATH_MAX];
	struct buf head;
	int len = snprintf(temp, sizeof(temp), "%s.part", p->to);

	if (len < 0 || (size_t)len >= sizeof(temp))
		return err_set(why, ERR_LIMIT, "path too long: %.80s", p->to);
	/* Not the job's model any more: made of that one. */
	memcpy(meta.job, p->job, sizeof(meta.job));
	memcpy(meta.base, p->base_id, sizeof(meta.base));
	buf_init(&head, MODELFILE_HEADER_MAX + MODELFILE_PREFIX);
	uint8_t *block = malloc(BLOCK);
	int fd = open(temp, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	enum err e = fd < 0 ? err_errno(why, "create %s", temp) : ERR_OK;
	if (!e && !block)
		e = err_set(why, ERR_NOMEM, "no memory for a block");
	if (!e && (e = modelfile_header(&head, &p->head.table, &meta)))
		err_set(why, e, "the model's header cannot be written");
	if (!e && file_pwrite(fd, head.data, head.len, 0))
		e = err_errno(why, "write %s", temp);
	if (!e)
		e = write_tensors(p, base, own, fd, head.len, block, why);
	if (!e)
		e = file_commit(fd, temp, p->to, why);
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && e)
		unlink(temp);
	free(block);
	buf_deinit(&head);
	return e;
}

static void
count_local(struct personal *p)
{
	for (size_t i = 0; i < p->head.table.count; i++)
		if (p->head.table.items[i].role == TENSOR_LOCAL) {
			p->tensors++;
			p->bytes += p->head.table.items[i].end - p->head.table.items[i].begin;
		}
}

static enum err
join(struct personal *p, struct why *why)
{
	struct kept own = {.fd = -1};
	char path[PATH_MAX];
	int base = -1;
	enum err e = open_base(p, &base, why);
	int n = snprintf(path, sizeof(path), "%s/local/%s" SUFFIX, p->home, p->job);

	if (!e && (n < 0 || (size_t)n >= sizeof(path)))
		e = err_set(why, ERR_LIMIT, "path too long");
	if (!e)
		e = kept_open(&own, DEVICEFILE_LOCAL, path, why);
	if (!e)
		count_local(p);
	if (!e && p->tensors == 0)
		e = err_set(why, ERR_INVALID, "job %.12s has no tensors of role \"local\"%s",
		    p->job, p->job_file ? ", as the file says" : "");
	if (!e && own.file.count != p->bytes)
		e = err_set(why, ERR_INVALID,
		    "the device keeps %llu bytes of local tensors, and %.100s has %llu: it is of "
		    "another "
		    "job",
		    (unsigned long long)own.file.count, p->base, (unsigned long long)p->bytes);
	if (!e)
		e = write_file(p, base, &own, why);
	kept_close(&own);
	if (base >= 0)
		close(base);
	return e;
}

static enum err
make(struct personal *p, struct why *why)
{
	enum err e = identity_home(p->home, p->home_word, why);

	if (!e)
		e = find_job(p, why);
	if (e)
		return e;
	if (!p->base_word) {
		e = find_base(p, why);
	} else {
		snprintf(p->base, sizeof(p->base), "%s", p->base_word);
		e = read_meta(p->base, &p->meta, why);
	}
	return e ? e : join(p, why);
}

static void
tell(const struct personal *p)
{
	if (p->json) {
		struct json *doc = json_object();
		json_add_string(doc, "file", p->to);
		json_add_string(doc, "job", p->job);
		json_add_string(doc, "base", p->base_id);
		json_add_u64(doc, "round", p->meta.round);
		json_add_u64(doc, "tensors", p->tensors);
		json_add_u64(doc, "bytes", p->bytes);
		cmd_print_json(doc);
		json_free(doc);
		return;
	}
	cmd_print_line("%s: the model of round %llu of job %.12s, with %zu tensors of this device",
	    p->to, (unsigned long long)p->meta.round, p->job, p->tensors);
}

int
cmd_personal_main(int argc, char **argv)
{
	struct personal *p = calloc(1, sizeof(*p));
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!p)
		return cmd_options_fail(ERR_NOMEM, &why);
	const struct option_entry table[] = {
	    {"output", 'o', "FILE", "where to", &p->to, NULL},
	    {"home", 0, "DIR", "of the device", &p->home_word, NULL},
	    {"base", 0, "FILE", "the job's model (default: the newest that the device holds)",
		&p->base_word, NULL},
	    {"job", 0, "JOBFILE", "the job document (default: of the job on the coordinator)",
		&p->job_file, NULL},
	    {"json", 0, NULL, "print JSON", NULL, &p->json},
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {
	    "model local JOB -o FILE [--base FILE] [--job JOBFILE] [--home DIR] [--json]",
	    "On a device: a job's model with the device's own tensors (role \"local\"), as a "
	    "safetensors "
	    "file.",
	    1, 1};
	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc)) {
		free(p);
		return rc;
	}
	p->word = words.words[0];
	if (!p->to) {
		free(p);
		cmd_print_error("model local wants -o FILE");
		return CMD_USAGE;
	}
	enum err e = make(p, &why);
	if (!e)
		tell(p);
	tensor_table_deinit(&p->head.table);
	recipe_deinit(&p->recipe);
	session_free(p->session);
	free(p);
	return e ? cmd_options_fail(e, &why) : CMD_OK;
}
