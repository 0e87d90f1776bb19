#ifndef PROGRAM_STATE_H
#define PROGRAM_STATE_H
#include "kept.h"
#include "work.h"

struct outbox;

/*
 * The state that a trainer program keeps between its tasks of a job, such as an optimizer's: the bytes of a model file (safetensors) with
 * tensors and metadata. Two kinds of file in HOME/kept, both RVK1 of FORMAT.md:
 *
 *     JOB.state   the state in force, which the program's next task of the job gets
 *     TASK.next   the state that a task's program wants kept; in force once the task's delta is accepted
 *
 * TASK.next is durable before the delta. When the receipt is here, before the delta leaves the outbox, it takes the place of JOB.state; if
 * the delta is refused or the task given back, it is removed. Of two deltas that waited, the state that was made later stays in force,
 * whichever is answered first. A state in force belongs to one trainer and one table of tensors, and no other gets it.
 */

/* Removes each TASK.next whose delta is not in the outbox, and each JOB.state not used for 30 days (disuse.h). Makes no directory. */
ERR_MUST_USE enum err program_state_init(const char *home, const struct outbox *o, struct why *why);
/* Opens the state in force for the task of *w; the caller closes *out. ERR_NOTFOUND: there is none. ERR_CORRUPT: the state is damaged, or
 * of another trainer or model, and was removed. Counts as use. */
ERR_MUST_USE enum err program_state_open(
    struct kept *out, const struct work *w, const char *home, struct why *why);
/* Copies the state's bytes to an empty file. */
ERR_MUST_USE enum err program_state_copy(const struct kept *k, int fd, struct why *why);
/* The most bytes that the task may keep. max_bytes is for all of HOME/kept, where a job's first state also reserves the room that the
 * next state needs beside it. */
uint64_t program_state_room(const struct work *w, const char *home, uint64_t max_bytes);

/* A reader of the bytes to keep. */
struct program_state_source {
	enum err (*read)(const void *context, void *out, size_t len, uint64_t at);
	const void *context; /* not owned */
	uint64_t bytes;
};
/* Keeps the bytes as TASK.next, in place of an older one. ERR_STATE: the task evaluates; ERR_LIMIT: more than program_state_room;
 * ERR_INVALID: no model file; else errors of the disk. After an error an older TASK.next stays. */
ERR_MUST_USE enum err program_state_keep(const struct work *w, const char *home, uint64_t max_bytes,
    const struct program_state_source *source, struct why *why);
/* The task's state is in force from now on, durably; a task without one is fine. */
ERR_MUST_USE enum err program_state_accept(const char *home, const char *task, struct why *why);
/* Forgets the task's state, TASK.next; called when the task's delta was removed from the outbox, or there never was one. */
void program_state_refuse(const char *home, const char *task);

#endif
