#include "store.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fault.h"
#include "report.h"
#include "store_inside.h"

#define GROUP_MAX 512

struct queued {
	struct queued *next;
	store_work fn;
	store_done done;
	void *arg;
	enum err e;
	struct why why;
};

/* A list with its end, first in, first out. */
struct queue {
	struct queued *head, **tail;
};

/* Whose turn it is to read, in the order of asking: with a mutex, a thread that reads many rows in pieces could overtake those waiting. */
struct turns {
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t changed;
	uint64_t next, now; /* number for the next thread that asks; number whose turn it is */
	bool taken;
	pthread_t reader; /* the thread that reads, while `taken` */
};

struct store {
	struct store_db writer; /* used by the store thread alone, once it runs */
	struct store_db reader; /* used by the thread whose turn it is */
	struct turns turns;
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t wake;
	struct queue waiting;
	bool closing;
	enum err (*before)(void *ctx, struct why *why);
	void *before_ctx;
	bool (*give)(void *ctx);
	void *give_ctx;
	struct store_report report;
	char path[PATH_MAX - 8], log_path[PATH_MAX];
	struct stat file, log; /* as they were opened */
	_Atomic bool has_log; /* there is a log, and `log` is set */
	struct store_sums *sums; /* used by the store thread alone */
	_Atomic bool filled;
};

static enum err
control(struct store_db *db, const char *sql)
{
	struct store_query q = store_query_begin(db, sql);

	return store_query_done(&q);
}

/* SQLite ends a transaction by itself after some errors: full disk, failed reads and writes, no memory. */
static bool
in_transaction(struct store_db *db)
{
	return !sqlite3_get_autocommit(db->sql);
}

/* Runs fn with a clean record of reasons. A reason that fn gave itself stands before SQLite's words. */
static enum err
call(struct store_db *db, store_work fn, void *arg, struct why *why)
{
	struct why said = {""};

	db->last.text[0] = '\0';
	enum err e = fn(db, arg, &said);
	if (!e)
		return ERR_OK;
	if (said.text[0])
		return err_set(why, e, "%s", said.text);
	return err_set(why, e, "%s", db->last.text[0] ? db->last.text : err_name(e));
}

/* Runs one work function in a savepoint. ERR_OK unless the transaction itself cannot go on. */
static enum err
run_work(struct store_db *db, struct queued *w, struct why *why)
{
	enum err e = control(db, "SAVEPOINT work");

	if (!e) {
		w->e = call(db, w->fn, w->arg, &w->why);
		if (!in_transaction(db))
			return err_set(why, w->e ? w->e : ERR_STATE,
			    "the transaction was undone: %s",
			    w->e ? w->why.text : "by a work of the group");
		if (w->e)
			e = control(db, "ROLLBACK TO work");
		e = e ? e : control(db, "RELEASE work");
	}
	return e ? err_set(why, e, "%s", db->last.text) : ERR_OK;
}

/* --- the files */

static bool
is_file(const char *path, const struct stat *opened)
{
	struct stat st;

	return stat(path, &st) == 0 && st.st_dev == opened->st_dev && st.st_ino == opened->st_ino;
}

enum err
store_is_there(struct store *s, struct why *why)
{
	if (!is_file(s->path, &s->file))
		return err_set(why, ERR_IO,
		    "%s was removed or replaced, and what is written now would be lost: put it "
		    "back, or stop, restore, and start",
		    s->path);
	return !s->has_log || is_file(s->log_path, &s->log)
	    ? ERR_OK
	    : err_set(why, ERR_IO,
		  "%s was removed, with all that was written last: stop, and see \"rivuletd "
		  "check\"",
		  s->log_path);
}

/* Remembers the database's file, and the log's path; there is a log after the first commit. */
static enum err
know_files(struct store *s, const char *path, struct why *why)
{
	if (snprintf(s->path, sizeof(s->path), "%s", path) >= (int)sizeof(s->path))
		return err_set(why, ERR_LIMIT, "path too long: %s", path);
	snprintf(s->log_path, sizeof(s->log_path), "%s-wal", s->path);
	return stat(s->path, &s->file) == 0 ? ERR_OK : err_errno(why, "%s", path);
}

static enum err
commit(struct store *s, struct why *why)
{
	double from = histogram_now();

	pthread_mutex_lock(&s->lock);
	enum err (*before)(void *, struct why *) = s->before;
	void *ctx = s->before_ctx;
	pthread_mutex_unlock(&s->lock);
	enum err e = before ? before(ctx, why) : ERR_OK;
	/* SQLite itself would go on in files that have no name any more. */
	e = e ? e : store_is_there(s, why);
	if (e)
		return e;
	FAULT("store.commit");
	e = control(&s->writer, "COMMIT");
	FAULT("store.committed");
	if (e)
		return err_set(why, e, "commit: %s", s->writer.last.text);
	if (!s->has_log)
		s->has_log = stat(s->log_path, &s->log) == 0;
	pthread_mutex_lock(&s->lock);
	histogram_add(&s->report.commit_seconds, histogram_now() - from);
	pthread_mutex_unlock(&s->lock);
	return ERR_OK;
}

static enum err
run_group(struct store *s, struct queue *group, struct why *why)
{
	struct store_db *db = &s->writer;
	enum err e = control(db, "BEGIN IMMEDIATE");
	bool any = false;

	if (e)
		return err_set(why, e, "begin: %s", db->last.text);
	for (struct queued *w = group->head; w && !e; w = w->next) {
		e = run_work(db, w, why);
		any = any || !w->e;
	}
	if (e || !any)
		return e;
	return commit(s, why);
}

static void
finish_group(struct store *s, struct queue *group, enum err e, const struct why *why)
{
	bool committed = false;
	uint64_t works = 0;

	for (struct queued *w = group->head; w; w = w->next) {
		if (e && !w->e) {
			w->e = e;
			w->why = *why;
		}
		committed = committed || !w->e;
		works++;
	}
	pthread_mutex_lock(&s->lock);
	s->report.commits_total += committed;
	s->report.works_total += works;
	pthread_mutex_unlock(&s->lock);
	while (group->head) {
		struct queued *w = group->head;
		group->head = w->next;
		if (w->done)
			w->done(w->arg, w->e, &w->why);
		free(w);
	}
}

/* Waits for work and takes at most GROUP_MAX work functions; false when the store closes and no work is left. */
static bool
take_group(struct store *s, struct queue *group)
{
	size_t n = 0;

	group->tail = &group->head;
	pthread_mutex_lock(&s->lock);
	while (!s->waiting.head && !s->closing)
		pthread_cond_wait(&s->wake, &s->lock);
	group->head = s->waiting.head;
	while (*group->tail && n++ < GROUP_MAX)
		group->tail = &(*group->tail)->next;
	s->waiting.head = *group->tail;
	*group->tail = NULL;
	if (!s->waiting.head)
		s->waiting.tail = &s->waiting.head;
	pthread_mutex_unlock(&s->lock);
	return group->head != NULL;
}

static void *
run(void *arg)
{
	struct store *s = arg;
	struct queue group;

	while (take_group(s, &group)) {
		struct why why = {""};
		enum err e = run_group(s, &group, &why);
		if (in_transaction(&s->writer)) {
			enum err undone = control(&s->writer, "ROLLBACK");
			(void)undone; /* If even this fails, the next group's BEGIN says so. */
		}
		finish_group(s, &group, e, &why);
	}
	return NULL;
}

/* Signals belong to the threads that ask for them. */
static enum err
start_thread(struct store *s, struct why *why)
{
	sigset_t all, before;

	sigfillset(&all);
	/* SQLite maps a file (the log's index), so cut_survive must get SIGBUS here. */
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed ? err_set(why, ERR_IO, "cannot start a thread: error %d", failed) : ERR_OK;
}

static void
init_locks(struct store *s)
{
	pthread_mutex_init(&s->turns.lock, NULL);
	pthread_cond_init(&s->turns.changed, NULL);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
}

static void
destroy(struct store *s)
{
	/* The reader first: the last connection to close checkpoints the log and removes it. */
	store_schema_close(&s->reader);
	store_schema_close(&s->writer);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->turns.changed);
	pthread_mutex_destroy(&s->turns.lock);
	store_sums_free(s->sums);
	free(s);
}

static enum err
open_at(struct store **out, const char *path, bool fresh, struct why *why)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(why, ERR_NOMEM, "no memory for the store");
	init_locks(s);
	s->waiting.tail = &s->waiting.head;
	enum err e = store_sums_new(&s->sums);
	if (e)
		err_set(why, e, "no memory for the store");
	e = e ? e : store_schema_open(&s->writer, path, fresh, why);
	e = e ? e : store_schema_open_reader(&s->reader, path, why);
	e = e ? e : know_files(s, path, why);
	e = e ? e : start_thread(s, why);
	if (e) {
		destroy(s);
		return e;
	}
	*out = s;
	return ERR_OK;
}

enum err
store_open(struct store **out, const char *path, struct why *why)
{
	return open_at(out, path, false, why);
}

enum err
store_open_fresh(struct store **out, const char *path, struct why *why)
{
	return open_at(out, path, true, why);
}

bool
store_was_torn(const struct store *s)
{
	return s->writer.torn;
}

void
store_close(struct store *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->closing = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	destroy(s);
}

void
store_before_commit(struct store *s, enum err (*fn)(void *ctx, struct why *why), void *ctx)
{
	pthread_mutex_lock(&s->lock);
	s->before = fn;
	s->before_ctx = ctx;
	pthread_mutex_unlock(&s->lock);
}

enum err
store_submit(struct store *s, store_work work, store_done done, void *arg)
{
	struct queued *w = calloc(1, sizeof(*w));

	if (!w)
		return ERR_NOMEM;
	*w = (struct queued){.fn = work, .done = done, .arg = arg};
	pthread_mutex_lock(&s->lock);
	bool closing = s->closing;
	if (!closing) {
		*s->waiting.tail = w;
		s->waiting.tail = &w->next;
		pthread_cond_signal(&s->wake);
	}
	pthread_mutex_unlock(&s->lock);
	if (closing)
		free(w);
	return closing ? ERR_CLOSED : ERR_OK;
}

/* One waiting call of store_write. */
struct wait {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	store_work fn;
	void (*then)(void *arg); /* NULL: nothing */
	void *arg;
	bool finished;
	enum err e;
	struct why why;
};

static enum err
wait_work(struct store_db *db, void *arg, struct why *why)
{
	struct wait *w = arg;

	return w->fn(db, w->arg, why);
}

static void
wait_done(void *arg, enum err e, const struct why *why)
{
	struct wait *w = arg;

	if (!e && w->then)
		w->then(w->arg);
	pthread_mutex_lock(&w->lock);
	w->e = e;
	w->why = *why;
	w->finished = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

enum err
store_write_then(
    struct store *s, store_work work, void (*then)(void *arg), void *arg, struct why *why)
{
	struct wait w = {.fn = work, .then = then, .arg = arg};

	if (pthread_equal(pthread_self(), s->thread))
		return err_set(why, ERR_STATE, "the store thread cannot wait for itself");
	pthread_mutex_init(&w.lock, NULL);
	pthread_cond_init(&w.wake, NULL);
	enum err e = store_submit(s, wait_work, wait_done, &w);
	if (e) {
		err_set(why, e, "the store takes no work: %s", err_name(e));
	} else {
		pthread_mutex_lock(&w.lock);
		while (!w.finished)
			pthread_cond_wait(&w.wake, &w.lock);
		pthread_mutex_unlock(&w.lock);
		e = w.e ? err_set(why, w.e, "%s", w.why.text) : ERR_OK;
	}
	pthread_cond_destroy(&w.wake);
	pthread_mutex_destroy(&w.lock);
	return e;
}

enum err
store_write(struct store *s, store_work work, void *arg, struct why *why)
{
	return store_write_then(s, work, NULL, arg, why);
}

static enum err
fill(struct store_db *db, void *arg, struct why *why)
{
	struct store *s = arg;

	enum err e = store_sums_work(db, s->sums, why);
	s->filled = store_sums_filled(s->sums);
	return e;
}

void
store_fill(struct store *s)
{
	/* What fails is tried at the next call; a failure of the disk shows elsewhere. */
	if (!s->filled && store_submit(s, fill, NULL, s))
		return;
}

void
store_reserve(struct store *s, bool (*give)(void *ctx), void *ctx)
{
	s->give = give;
	s->give_ctx = ctx;
}

enum err
store_write_reserved(
    struct store *s, store_work work, void (*then)(void *arg), void *arg, struct why *why)
{
	enum err e;

	do
		e = store_write_then(s, work, then, arg, why);
	while (e == ERR_NOSPACE && s->give && s->give(s->give_ctx));
	return e;
}

/* --- reading */

/* False: this thread has its turn already, and would wait for itself. */
static bool
take_turn(struct turns *t)
{
	pthread_mutex_lock(&t->lock);
	bool own = t->taken && pthread_equal(t->reader, pthread_self());
	if (!own) {
		uint64_t mine = t->next++;
		while (t->now != mine)
			pthread_cond_wait(&t->changed, &t->lock);
		t->taken = true;
		t->reader = pthread_self();
	}
	pthread_mutex_unlock(&t->lock);
	return !own;
}

static void
end_turn(struct turns *t)
{
	pthread_mutex_lock(&t->lock);
	t->taken = false;
	t->now++;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

enum err
store_read(struct store *s, store_work work, void *arg, struct why *why)
{
	struct store_db *db = &s->reader;

	if (!take_turn(&s->turns))
		return err_set(why, ERR_STATE, "a read inside a read");
	enum err e = control(db, "BEGIN");
	if (e) {
		err_set(why, e, "begin: %s", db->last.text);
	} else {
		e = call(db, work, arg, why);
		enum err ended = in_transaction(db) ? control(db, "ROLLBACK") : ERR_OK;
		if (!e && ended)
			e = err_set(why, ended, "end of a read: %s", db->last.text);
	}
	end_turn(&s->turns);
	return e;
}

void
store_report(struct store *s, struct store_report *out)
{
	pthread_mutex_lock(&s->lock);
	*out = s->report;
	pthread_mutex_unlock(&s->lock);
}
