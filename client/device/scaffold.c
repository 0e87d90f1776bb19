#include "scaffold.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bytes.h"
#include "fault.h"
#include "file.h"
#include "handle.h"
#include "hash.h"
#include "hex.h"
#include "training.h"
#include "variate.h"

#define HEAD 24
#define ATTEMPTS 6
#define ANSWER_MAX (64u << 10)
/* The server optimizer's vectors, the rule's, what the download lost, and the variate. */
#define STATE_VECTORS_MAX 5
#define JOB_HEX 32
#define DAYS_KEPT 90
#define DAY 86400

/* --- the directory */

/* Was neither of the job's files written or put in its place since? What counts may lie in either. */
static bool
is_old(int dir, const char *name, time_t before)
{
	static const char *const suffixes[] = {".own", ".next"};
	char path[JOB_HEX + 8];
	struct stat st;

	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%.32s%s", name, suffixes[i]);
		if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mtime >= before)
			return false;
	}
	return true;
}

static bool
is_variate(const char *name)
{
	return strspn(name, "0123456789abcdef") == JOB_HEX &&
	    (strcmp(name + JOB_HEX, ".own") == 0 || strcmp(name + JOB_HEX, ".next") == 0);
}

enum err
scaffold_init(const char *home, struct why *why)
{
	time_t before = time(NULL) - (time_t)DAYS_KEPT * DAY;
	char path[PATH_MAX];
	struct dirent **list = NULL;
	struct stat st;
	int len = snprintf(path, sizeof(path), "%s/variates", home);

	if (len < 0 || (size_t)len >= sizeof(path))
		return err_set(why, ERR_LIMIT, "path too long: %.80s", home);
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int n = dir < 0 ? 0 : scandir(path, &list, NULL, NULL);
	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;
		if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
		    (!is_variate(name) || is_old(dir, name, before)))
			unlinkat(dir, name, 0);
		free(list[i]);
	}
	free(list);
	if (dir >= 0)
		close(dir);
	return ERR_OK;
}

static enum err
path_of(char out[PATH_MAX], const struct rivulet *r, const char *suffix, struct why *why)
{
	int n = snprintf(out, PATH_MAX, "%s/variates/%.32s%s", r->home, r->work.task.job, suffix);

	return n > 0 && n < PATH_MAX ? ERR_OK : err_set(why, ERR_LIMIT, "path too long");
}

/* --- the own variate's files */

/* The elements of a file that is of this round, or NULL. */
static float *
read_file(const struct rivulet *r, const char *suffix, uint64_t round)
{
	size_t bytes = (size_t)r->work.table.elements * sizeof(float), len;
	char path[PATH_MAX], magic[4];
	uint8_t hash[HASH_LEN];
	float *out = NULL;
	char *data = NULL;

	if (path_of(path, r, suffix, NULL) ||
	    file_read(path, HEAD + bytes + HASH_LEN, &data, &len, NULL))
		return NULL;
	struct bytes_reader b = bytes_reader(data, len);
	bytes_get(&b, magic, sizeof(magic));
	bool right = bytes_get_u32(&b) == 0 && bytes_get_u64(&b) == round &&
	    bytes_get_u64(&b) == r->work.table.elements && !b.bad && b.left == bytes + HASH_LEN &&
	    memcmp(magic, "RVV1", 4) == 0;
	if (right) {
		hash_sha256(hash, data, HEAD + bytes);
		right = memcmp(hash, data + HEAD + bytes, HASH_LEN) == 0;
	}
	if (right && (out = malloc(bytes)))
		memcpy(out, data + HEAD, bytes);
	free(data);
	return out;
}

/* The new file has its place for good before it is used. */
static enum err
promote(const struct rivulet *r, struct why *why)
{
	char next[PATH_MAX], own[PATH_MAX];
	enum err e = path_of(next, r, ".next", why);

	if (!e)
		e = path_of(own, r, ".own", why);
	if (e)
		return e;
	int fd = open(next, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return err_errno(why, "open %s", next);
	e = file_commit(fd, next, own, why);
	close(fd);
	FAULT("client.promoted");
	return e;
}

static enum err
find_own(struct rivulet *r, struct why *why)
{
	struct scaffold *s = &r->work.scaffold;
	uint64_t counted = r->work.task.counted;

	if (counted == 0) {
		s->own = calloc((size_t)r->work.table.elements, sizeof(float));
		return s->own ? ERR_OK : err_set(why, ERR_NOMEM, "no memory for a variate");
	}
	s->own = read_file(r, ".next", counted);
	if (s->own)
		return promote(r, why);
	s->own = read_file(r, ".own", counted);
	return s->own ? ERR_OK
		      : err_set(why, ERR_STATE,
			    "the control variate that counts since round %llu is not in this home",
			    (unsigned long long)counted);
}

/* --- the coordinator's */

static enum err
check(const struct rivulet *r, struct transport_sink *sink, struct why *why)
{
	char id[2 * HASH_LEN + 1];
	uint8_t hash[HASH_LEN];

	if (sink->at != r->work.task.state_bytes)
		return err_set(why, ERR_CLOSED, "the state came incomplete");
	hash_finish(sink->hash, hash);
	hex_encode(id, hash, HASH_LEN);
	if (strcmp(id, r->work.task.state) == 0)
		return ERR_OK;
	hash_start(sink->hash);
	sink->at = 0;
	return err_set(why, ERR_CORRUPT, "the state's hash does not match its id");
}

/* What a broken connection brought is kept: the next request goes on from there. */
static enum err
download(struct rivulet *r, struct transport_sink *sink, struct why *why)
{
	char path[128];
	enum err e = ERR_CLOSED;

	snprintf(path, sizeof(path), "/v1/states/%.64s", r->work.task.state);
	const struct session_call call = {.path = path,
	    .attempts = 1,
	    .request = {.method = "GET", .sink = sink, .answer_max = ANSWER_MAX}};
	hash_start(sink->hash);
	for (unsigned i = 0; i < ATTEMPTS && (e == ERR_CLOSED || e == ERR_CORRUPT); i++) {
		struct transport_answer answer;
		if (i > 0 &&
		    !backoff_sleep(backoff_next(session_backoff(r->session)), handle_cancelled, r))
			return err_set(why, ERR_AGAIN, "cancelled");
		e = session_do(r->session, &call, &answer, why);
		if (!e)
			e = session_problem(&answer, NULL, why);
		transport_answer_deinit(&answer);
		if (!e)
			e = check(r, sink, why);
	}
	return e;
}

/* The variate is the last of the state's vectors. */
static enum err
fetch_into(struct rivulet *r, const char *part, struct why *why)
{
	const struct task *t = &r->work.task;
	size_t bytes = (size_t)r->work.table.elements * sizeof(float);
	struct transport_sink sink = {.max = t->state_bytes, .hash = hash_new()};

	if (!sink.hash)
		return err_set(why, ERR_NOMEM, "no memory");
	sink.fd = open(part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	enum err e = sink.fd < 0 ? err_errno(why, "create %s", part) : download(r, &sink, why);
	if (!e && file_pread(sink.fd, r->work.scaffold.server, bytes, t->state_bytes - bytes))
		e = err_set(why, ERR_IO, "%s cannot be read", part);
	if (sink.fd >= 0) {
		close(sink.fd);
		unlink(part);
	}
	hash_free(sink.hash);
	return e;
}

static enum err
fetch(struct rivulet *r, struct why *why)
{
	const struct task *t = &r->work.task;
	uint64_t bytes = r->work.table.elements * sizeof(float);
	struct scaffold *s = &r->work.scaffold;
	char part[PATH_MAX];

	s->server = calloc(1, (size_t)bytes);
	if (!s->server)
		return err_set(why, ERR_NOMEM, "no memory for a variate");
	if (!t->state[0])
		return ERR_OK;
	if (t->state_bytes % bytes != 0 || t->state_bytes / bytes > STATE_VECTORS_MAX)
		return err_set(why, ERR_INVALID, "a state of %llu bytes does not fit the model",
		    (unsigned long long)t->state_bytes);
	enum err e = path_of(part, r, ".part", why);
	return e ? e : fetch_into(r, part, why);
}

static bool
is_zero(const float *x, size_t n)
{
	size_t i = 0;

	while (i < n && !(x[i] > 0) && !(x[i] < 0))
		i++;
	return i == n;
}

enum err
scaffold_load(struct rivulet *r, struct why *why)
{
	struct scaffold *s = &r->work.scaffold;
	size_t n = (size_t)r->work.table.elements;
	char dir[PATH_MAX];

	s->on = r->work.task.recipe.local.variates > 0;
	if (!s->on)
		return ERR_OK;
	int len = snprintf(dir, sizeof(dir), "%s/variates", r->home);
	if (len < 0 || (size_t)len >= sizeof(dir))
		return err_set(why, ERR_LIMIT, "path too long");
	enum err e = file_mkdirs(dir, 0700, why);
	if (!e)
		e = find_own(r, why);
	if (!e)
		e = fetch(r, why);
	if (!e && !(s->shift = malloc(n * sizeof(float))))
		e = err_set(why, ERR_NOMEM, "no memory for a variate");
	if (!e)
		variate_correction(s->shift, s->server, s->own, n);
	/* A step without one is made another way, and the first round is to be that of plain averaging. */
	if (!e && is_zero(s->shift, n)) {
		free(s->shift);
		s->shift = NULL;
	}
	return e;
}

/* --- after the training */

float *
scaffold_change(const struct work *w, const float *delta, unsigned long long steps)
{
	const struct task *t = &w->task;
	double rates = (double)steps * (double)(float)training_rate(&t->recipe.local, t->round);
	size_t n = (size_t)w->table.elements;
	float *change = calloc(n, sizeof(*change));

	/* With a rate of 0 nothing was learned. */
	if (change && rates > 0)
		variate_change(change, w->scaffold.server, delta, rates, n);
	return change;
}

enum err
scaffold_keep(const struct rivulet *r, const float *change, struct why *why)
{
	const struct work *w = &r->work;
	size_t n = (size_t)w->table.elements, bytes = n * sizeof(float);
	char path[PATH_MAX];
	uint8_t *data;

	enum err e = path_of(path, r, ".next", why);
	if (e)
		return e;
	data = malloc(HEAD + bytes + HASH_LEN);
	if (!data)
		return err_set(why, ERR_NOMEM, "no memory for a variate");
	struct bytes_writer b = bytes_writer(data, HEAD);
	bytes_put(&b, "RVV1", 4);
	bytes_put_u32(&b, 0);
	bytes_put_u64(&b, w->task.round);
	bytes_put_u64(&b, w->table.elements);
	float *next = (float *)(void *)(data + HEAD);
	memcpy(next, w->scaffold.own, bytes);
	variate_advance(next, change, n);
	hash_sha256(data + HEAD + bytes, data, HEAD + bytes);
	e = file_write(path, data, HEAD + bytes + HASH_LEN, 0600, why);
	free(data);
	FAULT("client.variate");
	return e;
}

void
scaffold_deinit(struct scaffold *s)
{
	free(s->server);
	free(s->own);
	free(s->shift);
	*s = (struct scaffold){.on = false};
}
