#ifndef PACE_H
#define PACE_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The processor time of one thread that unauthenticated peers may use: a percentage of the time that passes, independent of the
 * scheduler's priorities. Half of the share is for handshakes and half for requests, so that neither waits for a flood of the other. The
 * thread measures what it does for them; the time of a handshake is refunded if the peer turns out to be known. Unused time is saved, up
 * to a burst; when an account has used too much it owes time, and no more work of its kind is begun until the debt is paid. All functions
 * but pace_refund are for that thread alone.
 */
struct pace {
	uint64_t wall_ns; /* monotonic time up to which both accounts got their share */
	struct pace_account {
		int64_t saved_ns; /* processor time saved; below 0: owed */
		bool unlimited;
		_Atomic uint64_t refunded_ns;
	} handshakes, requests;
};

/* Processor time saved at most: a small fleet that joins at once after a quiet time is not held up. */
#define PACE_BURST_NS 250000000
/* Processor time owed at most, because bodies that have begun are read to their end: after a flood new peers do not wait for minutes. */
#define PACE_DEBT_NS 250000000
/* Longest sleep of pace_wait, for which everything else on the thread waits: while both accounts owe, and while only one does. */
#define PACE_SLEEP_NS 20000000
#define PACE_GLANCE_NS 5000000

/* Begins with a burst saved in both accounts. */
void pace_init(struct pace *p);
/* Processor time of this thread in nanoseconds. */
uint64_t pace_cpu_ns(void);
/* Takes processor time that was used for unauthenticated peers from the account. */
void pace_charge(struct pace_account *a, uint64_t ns);
/* Gives back time that pace_charge took, because the peer was known. Any thread. */
void pace_refund(struct pace_account *a, uint64_t ns);
/* Does the account owe time? Then no work of its kind may begin. */
bool pace_owes(const struct pace_account *a);
/* Is less than half of the burst left? Then many unauthenticated peers come at once. */
bool pace_strained(const struct pace_account *a);
/* After each batch of work: adds `percent` of the time since the last call to the accounts, half to each (100: no limit). Sleeps a little
 * while one of them owes. */
void pace_wait(struct pace *p, uint32_t percent);

#endif
