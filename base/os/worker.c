#include "worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define WORKER_THREADS_MAX 256

struct item {
	struct item *next;
	void (*fn)(void *arg);
	void *arg;
	bool is_for; /* somebody: */
	uint8_t who[WORKER_FOR];
};

struct worker_pool {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct item *head, **tail;
	struct item *running; /* of those that are for somebody */
	bool stopping;
	int by;
	unsigned threads;
	pthread_t ids[WORKER_THREADS_MAX];
};

/* Lock held, as below. */
static bool
is_served(const struct worker_pool *p, const struct item *it)
{
	for (const struct item *r = p->running; r; r = r->next)
		if (it->is_for && memcmp(r->who, it->who, sizeof(it->who)) == 0)
			return true;
	return false;
}

/* The first whose turn it is; NULL: none. */
static struct item *
take_item(struct worker_pool *p)
{
	for (struct item **at = &p->head; *at; at = &(*at)->next) {
		struct item *it = *at;
		if (is_served(p, it))
			continue;
		*at = it->next;
		if (!*at)
			p->tail = at;
		if (it->is_for) {
			it->next = p->running;
			p->running = it;
		}
		return it;
	}
	return NULL;
}

/* Next item, waiting for one; NULL when the pool stops and nothing is left. */
static struct item *
next_item(struct worker_pool *p)
{
	struct item *it;

	pthread_mutex_lock(&p->lock);
	while (!(it = take_item(p)) && (p->head || !p->stopping))
		pthread_cond_wait(&p->wake, &p->lock);
	pthread_mutex_unlock(&p->lock);
	return it;
}

static void
end_item(struct worker_pool *p, struct item *it)
{
	if (it->is_for) {
		pthread_mutex_lock(&p->lock);
		struct item **at = &p->running;
		while (*at != it)
			at = &(*at)->next;
		*at = it->next;
		pthread_cond_broadcast(&p->wake);
		pthread_mutex_unlock(&p->lock);
	}
	free(it);
}

static void *
run(void *arg)
{
	struct worker_pool *p = arg;
	struct item *it;

	/* Of this thread alone. */
	if (p->by > 0)
		(void)setpriority(PRIO_PROCESS, 0, p->by);
	while ((it = next_item(p))) {
		it->fn(it->arg);
		end_item(p, it);
	}
	return NULL;
}

enum err
worker_pool_new(struct worker_pool **out, unsigned threads)
{
	return worker_pool_new_behind(out, threads, 0);
}

enum err
worker_pool_new_behind(struct worker_pool **out, unsigned threads, int by)
{
	struct worker_pool *p = calloc(1, sizeof(*p));

	if (!p)
		return ERR_NOMEM;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	p->tail = &p->head;
	p->by = by;
	if (threads > WORKER_THREADS_MAX)
		threads = WORKER_THREADS_MAX;
	while (p->threads < threads && pthread_create(&p->ids[p->threads], NULL, run, p) == 0)
		p->threads++;
	if (p->threads == 0) {
		worker_pool_free(p);
		return ERR_NOMEM;
	}
	*out = p;
	return ERR_OK;
}

void
worker_pool_free(struct worker_pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	pthread_cond_broadcast(&p->wake);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->threads; i++)
		pthread_join(p->ids[i], NULL);
	pthread_cond_destroy(&p->wake);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static enum err
append(struct worker_pool *p, const struct item *item)
{
	struct item *it = malloc(sizeof(*it));

	if (!it)
		return ERR_NOMEM;
	*it = *item;
	pthread_mutex_lock(&p->lock);
	*p->tail = it;
	p->tail = &it->next;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	return ERR_OK;
}

enum err
worker_submit(struct worker_pool *p, void (*fn)(void *arg), void *arg)
{
	return append(p, &(struct item){.fn = fn, .arg = arg});
}

enum err
worker_submit_for(
    struct worker_pool *p, const uint8_t who[WORKER_FOR], void (*fn)(void *arg), void *arg)
{
	struct item it = {.fn = fn, .arg = arg, .is_for = true};

	memcpy(it.who, who, sizeof(it.who));
	return append(p, &it);
}

struct parallel {
	atomic_uint next;
	unsigned count;
	void (*fn)(void *arg, unsigned i);
	void *arg;
};

static void *
run_parallel(void *arg)
{
	struct parallel *p = arg;
	unsigned i;

	while ((i = atomic_fetch_add(&p->next, 1)) < p->count)
		p->fn(p->arg, i);
	return NULL;
}

void
worker_parallel(unsigned threads, unsigned count, void (*fn)(void *arg, unsigned i), void *arg)
{
	struct parallel p = {.count = count, .fn = fn, .arg = arg};
	pthread_t ids[WORKER_THREADS_MAX];
	unsigned started = 0;

	if (threads > WORKER_THREADS_MAX)
		threads = WORKER_THREADS_MAX;
	if (threads > count)
		threads = count;
	/* A thread that cannot be started only costs time: the caller does its share. */
	while (started + 1 < threads && pthread_create(&ids[started], NULL, run_parallel, &p) == 0)
		started++;
	run_parallel(&p);
	for (unsigned i = 0; i < started; i++)
		pthread_join(ids[i], NULL);
}
