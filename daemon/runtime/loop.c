#include "loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock.h"

#define LOOP_BATCH 128

struct loop {
	int epoll;
	struct loop_source wake; /* eventfd */
	pthread_mutex_t lock;
	struct loop_post *head, **tail;
	atomic_bool stopping;
	uint64_t every_ms, next_tick_ms;
	void (*tick)(void *ctx, uint64_t now_ms);
	void *tick_ctx;
	void (*batch)(void *ctx);
	void *batch_ctx;
};

static void
on_wake(struct loop_source *s, uint32_t events)
{
	uint64_t count;

	(void)events;
	while (read(s->fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

enum err
loop_new(struct loop **out)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (!l)
		return ERR_NOMEM;
	pthread_mutex_init(&l->lock, NULL);
	l->tail = &l->head;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->wake = (struct loop_source){on_wake, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	if (l->epoll < 0 || l->wake.fd < 0 || loop_add(l, &l->wake, EPOLLIN)) {
		loop_free(l);
		return ERR_IO;
	}
	*out = l;
	return ERR_OK;
}

void
loop_free(struct loop *l)
{
	if (!l)
		return;
	if (l->epoll >= 0)
		close(l->epoll);
	if (l->wake.fd >= 0)
		close(l->wake.fd);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static enum err
control(struct loop *l, int op, struct loop_source *s, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = s};

	return epoll_ctl(l->epoll, op, s->fd, &ev) == 0 ? ERR_OK : err_errno(NULL, "epoll_ctl");
}

enum err
loop_add(struct loop *l, struct loop_source *s, uint32_t events)
{
	return control(l, EPOLL_CTL_ADD, s, events);
}

enum err
loop_change(struct loop *l, struct loop_source *s, uint32_t events)
{
	return control(l, EPOLL_CTL_MOD, s, events);
}

void
loop_remove(struct loop *l, struct loop_source *s)
{
	epoll_ctl(l->epoll, EPOLL_CTL_DEL, s->fd, NULL);
}

void
loop_on_tick(struct loop *l, uint64_t every_ms, void (*fn)(void *ctx, uint64_t now_ms), void *ctx)
{
	l->every_ms = every_ms;
	l->tick = fn;
	l->tick_ctx = ctx;
	l->next_tick_ms = clock_ms() + every_ms;
}

void
loop_tick_by(struct loop *l, uint64_t at_ms)
{
	if (at_ms < l->next_tick_ms)
		l->next_tick_ms = at_ms;
}

void
loop_on_batch(struct loop *l, void (*fn)(void *ctx), void *ctx)
{
	l->batch = fn;
	l->batch_ctx = ctx;
}

static void
run_posts(struct loop *l)
{
	pthread_mutex_lock(&l->lock);
	struct loop_post *p = l->head;
	l->head = NULL;
	l->tail = &l->head;
	pthread_mutex_unlock(&l->lock);
	while (p) {
		struct loop_post *next = p->next;
		p->fn(p);
		p = next;
	}
}

static void
run_tick(struct loop *l)
{
	uint64_t now = clock_ms();

	if (!l->tick || now < l->next_tick_ms)
		return;
	l->next_tick_ms = now + l->every_ms;
	l->tick(l->tick_ctx, now);
}

static int
timeout_ms(const struct loop *l)
{
	uint64_t now = clock_ms();

	if (!l->tick)
		return -1;
	return now >= l->next_tick_ms ? 0 : (int)(l->next_tick_ms - now);
}

void
loop_run(struct loop *l)
{
	struct epoll_event events[LOOP_BATCH];

	while (!atomic_load(&l->stopping)) {
		int n = epoll_wait(l->epoll, events, LOOP_BATCH, timeout_ms(l));
		for (int i = 0; i < n; i++) {
			struct loop_source *s = events[i].data.ptr;
			s->ready(s, events[i].events);
		}
		run_posts(l);
		run_tick(l);
		if (l->batch)
			l->batch(l->batch_ctx);
	}
	run_posts(l);
}

static void
wake(struct loop *l)
{
	uint64_t one = 1;

	while (write(l->wake.fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void
loop_post(struct loop *l, struct loop_post *p)
{
	p->next = NULL;
	pthread_mutex_lock(&l->lock);
	*l->tail = p;
	l->tail = &p->next;
	pthread_mutex_unlock(&l->lock);
	wake(l);
}

void
loop_stop(struct loop *l)
{
	atomic_store(&l->stopping, true);
	wake(l);
}
