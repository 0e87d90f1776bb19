#ifndef DEVICE_H
#define DEVICE_H
#include "abort_reason.h"
#include "eligibility.h"
#include "finish.h"
#include "session.h"
#include "settings.h"

/*
 * How an agent works a device, beyond rivulet.h: it says what it offers, judges a task before its model is fetched, changes the work in
 * place and hands it in with finish_submit. What is returned belongs to the device and lives until rivulet_close.
 */
struct rivulet;

/* The agent fills in data, trainers and what these can do, and may do so again between tasks; the rest is the device's. */
struct offer *device_offer(struct rivulet *r);
/* consider is asked about each task before its model is fetched, and may change task and text: ABORT_NONE, or the reason it is given back for,
 * with the sentence in why; with ABORT_OUT_OF_MEMORY it sets the work's two bytes. */
void device_consider(struct rivulet *r,
    enum abort_reason (*consider)(void *context, struct work *work, struct why *why),
    void *context);
/* While `wanted` says so, rivulet_next does not wait: it returns RIVULET_TIMEOUT, unless a task has come. */
void device_interrupt(struct rivulet *r, bool (*wanted)(void *context), void *context);
/* The task in hand until it is submitted, aborted or dropped for the next one; NULL without. */
struct work *device_task(struct rivulet *r);
/* What rivulet_abort does, and returns. */
int device_abort(struct rivulet *r, struct abort_cause cause, const char *log);
/* Is this device told to stop? context: the handle. */
bool device_cancelled(void *context);
/* Who asks the owner's program, where [eligibility] has a check. */
void device_check_with(struct rivulet *r, eligibility_check *check, void *context);
/* Which of the owner's rules ends training now; WAIT_NONE: none. Of the result, `why` takes a sentence. */
enum wait_reason device_stops(struct rivulet *r, struct why *why);
/* What the coordinator was told of the owner's rules: the word of the one that says no, or "". */
const char *device_unready(const struct rivulet *r);
/* Bytes that a task may take here: the owner's memory_bytes, else what the machine lets this process have; 0: it cannot be told. */
uint64_t device_memory(const struct rivulet *r);
/* Why it waits, if that is for want of memory: with what a task takes and what there is; else "". */
const char *device_shortage(const struct rivulet *r);
/* Blocks after a task that came to nothing, longer each time, until a delta is taken; not if its job rests instead. False: cancelled. */
bool device_rest(struct rivulet *r);
/* Why rivulet_submit gave RIVULET_IO. */
enum abort_reason device_disk(const struct rivulet *r);

const char *device_home(const struct rivulet *r);
const struct settings *device_settings(const struct rivulet *r);
const struct events *device_events(const struct rivulet *r);
struct session *device_session(struct rivulet *r);

#endif
