#ifndef MODELS_H
#define MODELS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modelfile.h"
#include "stamp.h"

struct difference;

/*
 * The folder models/: immutable files named by the hex SHA-256 of their bytes ("<id>"), and optimizer states
 * ("<hash>.state") and differences ("<id of the new model>.diff") beside them. A file that exists is complete: every file is written
 * under a temporary name, hashed, synced and renamed. An open model is mapped once and shared by all that serve or read it. Any thread.
 */
struct models;
struct models_report; /* report.h */
struct stop;

struct models_map {
	uint8_t id[32];
	/* Zeros: data are a model; equal to id: data are an optimizer state; else data are differences that lead from this model to id. */
	uint8_t from[32];
	const uint8_t *data;
	uint64_t bytes;
	uint64_t data_at; /* model only: where the tensors' data section begins */
	struct tensor_table table; /* model only; with default roles */
	/* private */
	unsigned refs;
	unsigned long cuts; /* cut_count before the file was mapped */
	/* Of the file as it was hashed; zeros: the map has no file of its own. */
	struct stamp stamp;
	/* joined: set if data are in memory and models.joined counts their bytes; NULL: data are in a file. */
	struct models *owner, *joined;
	struct models_map *next;
};

/* Makes the folder, or removes from it the temporary files of a crash: one coordinator at a time. */
ERR_MUST_USE enum err models_open(struct models **out, const char *dir, struct why *why);
void models_close(struct models *m);
/* From now on long calls (hashing, reading, writing) end with ERR_CLOSED once `stop` is asked for. Before any other thread. */
void models_until(struct models *m, struct stop *stop);

/* Maps a model; each reference is released once. The file is hashed the first time in a process, and again when somebody has written
 * to it since. ERR_NOTFOUND, or ERR_CORRUPT if hash and name differ or the header does not parse; else as file_map. */
ERR_MUST_USE enum err models_get(
    struct models *m, const uint8_t id[32], struct models_map **out, struct why *why);
void models_map_release(struct models_map *map); /* NULL is legal */
/* So many bytes of a map are sent. */
void models_note_sent(struct models *m, const struct models_map *map, uint64_t bytes);
void models_report(const struct models *m, struct models_report *out);
/* Does the hash of the file "<id><suffix>" match its name? The file is hashed unless this process has hashed it and nobody has written to
 * it since, and never mapped. ERR_NOTFOUND, ERR_CORRUPT; ERR_IO and others if the file cannot be read. */
#define MODELS_STATE ".state"
ERR_MUST_USE enum err models_check(
    struct models *m, const uint8_t id[32], const char *suffix, struct why *why);
/* False: a page of the map could not be read and is zeros instead, because the file was cut or the disk fails (cut.h). */
bool models_map_whole(const struct models_map *map);
/* Reads the bytes [at, at + len) of a map, which are to be sent, and returns models_map_whole. */
bool models_map_reads(const struct models_map *map, uint64_t at, uint64_t len);
/* Is the file behind a map still as it was hashed, and could the map be read? To be asked after reading values that must not be wrong.
 * ERR_CORRUPT, ERR_IO. */
ERR_MUST_USE enum err models_unchanged(
    struct models *m, const struct models_map *map, struct why *why);
/* A device says that the model it was sent does not match its id: the file is hashed again, unless a doubt has had it hashed within five
 * minutes (then ERR_OK). Errors as models_check. */
ERR_MUST_USE enum err models_doubt(struct models *m, const uint8_t id[32], struct why *why);

/* Writes a model from header and data durably; id receives its hash. */
ERR_MUST_USE enum err models_put(struct models *m, const void *header, size_t header_len,
    const void *data, uint64_t data_len, uint8_t id[32], struct why *why);
/*
 * Writing a file piece by piece, so that nobody holds it whole: begin, add any number of times, end, keep; then drop, also of a file that
 * is not kept. The file is written under a temporary name and hashed as it comes, and synced now and then, so that no other sync has to
 * wait for all of it. ERR_CLOSED if the program is to end.
 */
struct models_file;
enum models_kind { MODELS_KIND_MODEL, MODELS_KIND_STATE, MODELS_KIND_DIFFERENCE };
ERR_MUST_USE enum err models_file_begin(
    struct models *m, struct models_file **out, struct why *why);
ERR_MUST_USE enum err models_file_add(
    struct models_file *f, const void *data, uint64_t len, struct why *why);
/* Makes the file's bytes durable; hash receives their SHA-256. */
ERR_MUST_USE enum err models_file_end(struct models_file *f, uint8_t hash[32], struct why *why);
/* Gives the file its name, durably: a difference is named by the id of the model that it leads to, any other file by its hash. */
ERR_MUST_USE enum err models_file_keep(
    struct models_file *f, enum models_kind kind, const uint8_t id[32], struct why *why);
void models_file_drop(struct models_file *f); /* NULL is legal */

/* A path for a file under construction in the same folder (unique), and its adoption under `id` after the caller hashed it. */
void models_temp_path(struct models *m, char *out, size_t room);
ERR_MUST_USE enum err models_adopt(
    struct models *m, int fd, const char *temp, const uint8_t id[32], struct why *why);
/* Is the model's file there? For a transaction that writes the model's row: ERR_CLOSED if retention has just removed the file; whoever
 * uploads the model then does so again. */
ERR_MUST_USE enum err models_still(struct models *m, const uint8_t id[32], struct why *why);
/* Removes a model, and the difference that leads to it. */
ERR_MUST_USE enum err models_delete(struct models *m, const uint8_t id[32]);

/* What becomes of a file found at start. */
enum models_fate {
	MODELS_STAYS,
	MODELS_GOES,
	/* Removed as the leftover of a crash; set aside if another file is MODELS_LOST, as the database is not theirs. */
	MODELS_LEFTOVER,
	MODELS_LOST, /* set aside */
};
typedef enum models_fate models_judge(void *ctx, const uint8_t id[32], bool state);
/* At start, before any other thread: has `judge` decide on each model and optimizer state, and keeps it, removes it or sets it aside in
 * `aside`. A difference is removed unless its model stays. *lost: files of this state judged lost before (the spool's), to which those
 * judged MODELS_LOST are added. */
ERR_MUST_USE enum err models_recover(struct models *m, models_judge *judge, void *ctx,
    const char *aside, uint64_t *lost, struct why *why);
/* What the header of a model file says of its origin; zeros without it. ERR_NOTFOUND, ERR_CORRUPT. */
ERR_MUST_USE enum err models_meta(
    struct models *m, const uint8_t id[32], struct modelfile_meta *out, struct why *why);

/* Optimizer state: `count` floats, checked against the hash when read. */
ERR_MUST_USE enum err models_state_put(
    struct models *m, const float *state, uint64_t count, uint8_t hash[32], struct why *why);
ERR_MUST_USE enum err models_state_get(
    struct models *m, const uint8_t hash[32], float *state, uint64_t count, struct why *why);
/* Maps an optimizer state as bytes; released with models_map_release. ERR_NOTFOUND, ERR_CORRUPT. */
ERR_MUST_USE enum err models_state_map(
    struct models *m, const uint8_t hash[32], struct models_map **out, struct why *why);
/* Does the state's file match its hash? An all-zero hash means no state, and is ERR_OK. ERR_NOTFOUND, ERR_CORRUPT. */
ERR_MUST_USE enum err models_state_check(struct models *m, const uint8_t hash[32], struct why *why);
ERR_MUST_USE enum err models_state_delete(struct models *m, const uint8_t hash[32]);

#define MODELS_DIFFERENCE ".diff"
/* Fills d->payload_hash and d->tag and writes the difference d with its payload: *out is ended, for models_file_keep with d->to. */
ERR_MUST_USE enum err models_difference_write(struct models *m, struct difference *d,
    const void *payload, struct models_file **out, struct why *why);
/* models_difference_write, and keeps the file. */
ERR_MUST_USE enum err models_difference_put(
    struct models *m, struct difference *d, const void *payload, struct why *why);
/* The head of the difference that leads to this model. ERR_NOTFOUND if there is none, ERR_CORRUPT if the file is no such difference. */
ERR_MUST_USE enum err models_difference_head(
    struct models *m, const uint8_t to[32], struct difference *out, struct why *why);
/* Maps what leads from one model to another: one difference, or several, the oldest first, which are concatenated in memory, at most
 * MODELS_JOINED_MAX bytes over all maps. Released with models_map_release. ERR_NOTFOUND if no differences lead there, the model itself
 * has no more bytes, or memory has no room for several; ERR_CORRUPT if a difference on the way is damaged. */
#define MODELS_JOINED_MAX ((uint64_t)256 << 20)
ERR_MUST_USE enum err models_difference_get(struct models *m, const uint8_t to[32],
    const uint8_t from[32], struct models_map **out, struct why *why);
ERR_MUST_USE enum err models_difference_delete(struct models *m, const uint8_t to[32]);
/* Is the file behind fd a sound difference that leads to this model? ERR_CORRUPT. */
ERR_MUST_USE enum err models_difference_check(int fd, const uint8_t to[32], struct why *why);

#endif
