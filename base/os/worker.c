#include "worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define WORKER_THREADS_MAX 256

struct item {
	struct item *next;
	void (*fn)(void *arg);
	void *arg;
};

struct worker_pool {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct item *head, **tail;
	bool stopping;
	unsigned threads;
	pthread_t ids[WORKER_THREADS_MAX];
};

/* Next item, waiting for one; NULL when the pool stops and nothing is left. */
static struct item *
next_item(struct worker_pool *p)
{
	pthread_mutex_lock(&p->lock);
	while (!p->head && !p->stopping)
		pthread_cond_wait(&p->wake, &p->lock);
	struct item *it = p->head;
	if (it) {
		p->head = it->next;
		if (!p->head)
			p->tail = &p->head;
	}
	pthread_mutex_unlock(&p->lock);
	return it;
}

static void *
run(void *arg)
{
	struct item *it;

	while ((it = next_item(arg))) {
		it->fn(it->arg);
		free(it);
	}
	return NULL;
}

enum err
worker_pool_new(struct worker_pool **out, unsigned threads)
{
	struct worker_pool *p = calloc(1, sizeof(*p));

	if (!p)
		return ERR_NOMEM;
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->wake, NULL);
	p->tail = &p->head;
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

enum err
worker_submit(struct worker_pool *p, void (*fn)(void *arg), void *arg)
{
	struct item *it = malloc(sizeof(*it));

	if (!it)
		return ERR_NOMEM;
	*it = (struct item){NULL, fn, arg};
	pthread_mutex_lock(&p->lock);
	*p->tail = it;
	p->tail = &it->next;
	pthread_cond_signal(&p->wake);
	pthread_mutex_unlock(&p->lock);
	return ERR_OK;
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
