#ifndef OUTBOX_H
#define OUTBOX_H
#include <limits.h>
#include <stdbool.h>

#include "manifest.h"
#include "messages.h"

/*
 * Deltas, and reports of evaluations, on the device's disk until the coordinator has accepted or refused them: HOME/outbox/TASK.delta. An
 * entry is written durably before its first byte is sent and survives a killed client and a power cut.
 *
 * File: "RVO1", u32 version (1), u32 report length, u32 zero, u64 body length, zeros to 64; manifest (320); report; body
 * (leaves and payload; empty for an evaluation). A file can be checked alone: the manifest is signed and covers the rest.
 */
#define OUTBOX_TASK_HEX 33
#define OUTBOX_ENTRIES_MAX 256

struct outbox {
	char dir[PATH_MAX - 128];
	uint64_t max_bytes;
};

struct outbox_item {
	const uint8_t *manifest; /* MANIFEST_LEN, signed */
	const char *report; /* NULL without one */
	size_t report_len;
	const void *leaves;
	size_t leaves_len;
	uint64_t payload_len;
};

/* An entry that is being written. The caller writes the payload to fd, behind room for `leaves_len` bytes at body_at. */
struct outbox_draft {
	char task[OUTBOX_TASK_HEX], temp[PATH_MAX];
	int fd; /* to be read and written; -1: there is none */
	uint64_t body_at;
};

struct outbox_entry {
	char path[PATH_MAX];
	int fd; /* open for reading */
	uint8_t raw[MANIFEST_LEN];
	struct manifest manifest;
	char report[REPORT_MAX];
	size_t report_len;
	uint64_t body_at, body_bytes;
};

/* Makes the directory and removes what an interrupted write left. */
ERR_MUST_USE enum err outbox_init(
    struct outbox *o, const char *home, uint64_t max_bytes, struct why *why);
/* Begins an entry whose body will have at least `least` bytes. ERR_NOSPACE past max_bytes. outbox_discard is due in every case. */
ERR_MUST_USE enum err outbox_begin(struct outbox_draft *d, const struct outbox *o, const char *task,
    size_t report_len, uint64_t least, struct why *why);
/* Finishes an entry whose payload is written: the entry is then durable, in place of an older one of the task. ERR_NOSPACE past
 * max_bytes. */
ERR_MUST_USE enum err outbox_commit(struct outbox_draft *d, const struct outbox *o,
    const struct outbox_item *item, struct why *why);
/* Removes a draft that was not committed. */
void outbox_discard(struct outbox_draft *d);
/* Task ids waiting, in name order; returns how many, at most max. */
size_t outbox_list(const struct outbox *o, char (*tasks)[OUTBOX_TASK_HEX], size_t max);
/* How many entries wait, and their bytes. */
void outbox_held(const struct outbox *o, uint64_t *entries, uint64_t *bytes);
bool outbox_has(const struct outbox *o, const char *task);
/* Opens and checks an entry: structure, report hash and, with spki, signature, leaves and every byte of the payload.
 * ERR_CORRUPT says what is wrong. */
ERR_MUST_USE enum err outbox_open(struct outbox_entry *out, const struct outbox *o,
    const char *task, const uint8_t *spki, struct why *why);
void outbox_close(struct outbox_entry *entry);
void outbox_remove(const struct outbox *o, const char *task);

#endif
