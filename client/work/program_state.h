#ifndef PROGRAM_STATE_H
#define PROGRAM_STATE_H
#include "kept.h"
#include "work.h"

struct outbox;

/*
 * What a program keeps of its own between its tasks of a job, such as the state of an optimizer: the bytes of a model file (safetensors), tensors
 * and what the program writes into its metadata. Two kinds of file in HOME/kept, both RVK1 of FORMAT.md:
 *
 *     JOB.state   what is in force: the program's next task of the job is given it
 *     TASK.next   what that task's program wants kept; in force once its delta is accepted
 *
 * TASK.next is durable before the delta, takes the place of JOB.state when the receipt is here, before the delta leaves the outbox, and
 * goes with a delta that is refused or a task that is given back. Of two deltas that waited, the state that was made later stays in
 * force, whichever is answered first. What is in force is of one trainer and one table of tensors: no other is given it.
 */

/* Removes what belongs to no delta of the outbox, and what was not used for 30 days (disuse.h). Makes no directory. */
ERR_MUST_USE enum err program_state_init(const char *home, const struct outbox *o, struct why *why);
/* What is in force for the task of *w; the caller closes it. ERR_NOTFOUND: nothing is. ERR_CORRUPT: it is damaged, or of another
 * trainer or model, and was removed. Counts as use. */
ERR_MUST_USE enum err program_state_open(
    struct kept *out, const struct work *w, const char *home, struct why *why);
/* Writes its bytes to an empty file. */
ERR_MUST_USE enum err program_state_copy(const struct kept *k, int fd, struct why *why);
/* The most bytes that the task may want kept: max_bytes is for all of HOME/kept, where a job's first state also takes the room that the
 * next one needs beside it. */
uint64_t program_state_room(const struct work *w, const char *home, uint64_t max_bytes);

/* Where the bytes are. */
struct program_state_source {
	enum err (*read)(const void *context, void *out, size_t len, uint64_t at);
	const void *context; /* not owned */
	uint64_t bytes;
};
/* Keeps them as TASK.next, in place of an older one. ERR_STATE: the task evaluates; ERR_LIMIT: more than program_state_room;
 * ERR_INVALID: no model file; else of the disk. What was there before is there then. */
ERR_MUST_USE enum err program_state_keep(const struct work *w, const char *home, uint64_t max_bytes,
    const struct program_state_source *source, struct why *why);
/* The task's state is in force from now on, durably; a task without one is fine. */
ERR_MUST_USE enum err program_state_accept(const char *home, const char *task, struct why *why);
/* Forgets the task's state. Its delta is out of the outbox for good, or was never there. */
void program_state_refuse(const char *home, const char *task);

#endif
