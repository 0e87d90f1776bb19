#ifndef PACE_H
#define PACE_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * What strangers may take of a thread's processor time: a share of the time that passes, in percent, whatever the scheduler thinks of
 * priorities. Half of it is for handshakes and half for requests, so that neither has to wait for a crowd of the other. The thread
 * measures what it does for them; a handshake that turns out to have been for somebody known is given back. Time that is not used is
 * saved, up to a burst; who used too much owes it, and nothing more of that kind is begun until it is paid. All functions but
 * pace_refund are for that thread alone.
 */
struct pace {
	uint64_t wall_ns; /* as pace_wait last saw it */
	struct pace_account {
		int64_t saved_ns; /* processor time left; less than 0: owed */
		bool unlimited;
		_Atomic uint64_t refunded_ns;
	} handshakes, requests;
};

/* Processor time left for who comes after a quiet time: a small fleet that joins at once is not held up. */
#define PACE_BURST_NS 250000000
/* More is not owed, because bodies that have begun are read to their end: after a flood strangers do not wait for minutes. */
#define PACE_DEBT_NS 250000000
/* Longest time asleep at once: what else the thread serves waits so long; and while only one of the two owes. */
#define PACE_SLEEP_NS 20000000
#define PACE_GLANCE_NS 5000000

/* A burst is saved. */
void pace_init(struct pace *p);
/* Processor time of this thread in nanoseconds. */
uint64_t pace_cpu_ns(void);
/* `ns` of it were for strangers. */
void pace_charge(struct pace_account *a, uint64_t ns);
/* Any thread: they were not. */
void pace_refund(struct pace_account *a, uint64_t ns);
/* Not now. */
bool pace_owes(const struct pace_account *a);
/* Less than half of the burst is left: there is a crowd. */
bool pace_strained(const struct pace_account *a);
/* After each batch of work: `percent` of the time since the last call is the strangers' (100: no limit). Sleeps a little while one of
 * the two owes. */
void pace_wait(struct pace *p, uint32_t percent);

#endif
