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
 * ("<hash>.state") and differences ("<id of the new model>.diff") beside them. A file that exists is complete: it is written under a temporary name, synced, hashed,
 * renamed. Open models are mapped once and shared by everyone who serves or reads them. Any thread.
 */
struct models;
struct stop;

struct models_map {
	uint8_t id[32];
	/* Zeros, or: data are differences, and lead from this model to id; itself: data are a state. */
	uint8_t from[32];
	const uint8_t *data;
	uint64_t bytes;
	uint64_t data_at; /* where the tensors' data section begins; of a model */
	struct tensor_table table; /* default roles; of a model */
	/* private */
	unsigned refs;
	unsigned long cuts; /* cut_count before it was mapped */
	struct stamp stamp; /* as it was hashed; zeros: it has no file of its own */
	struct models *owner,
	    *joined; /* joined: where its bytes are counted, NULL: they lie in a file */
	struct models_map *next;
};

/* Makes the folder, or removes what a crash left unfinished in it: one coordinator at a time. */
ERR_MUST_USE enum err models_open(struct models **out, const char *dir, struct why *why);
void models_close(struct models *m);
/* From now on what takes long ends with ERR_CLOSED when it is asked for. Before any other thread. */
void models_until(struct models *m, struct stop *stop);

/* Maps a model; each reference is released once. Its bytes are hashed the first time in a process, and again when somebody has written
 * to the file since. ERR_NOTFOUND, or ERR_CORRUPT if they do not match its name or its header does not parse; else as file_map. */
ERR_MUST_USE enum err models_get(
    struct models *m, const uint8_t id[32], struct models_map **out, struct why *why);
void models_map_release(struct models_map *map); /* NULL is legal */
/* Does the file "<id><suffix>" match its name? It is only hashed if nobody knows, or somebody has written to it since, and never mapped.
 * ERR_NOTFOUND, ERR_CORRUPT; ERR_IO and others if it cannot be read. */
#define MODELS_STATE ".state"
ERR_MUST_USE enum err models_check(
    struct models *m, const uint8_t id[32], const char *suffix, struct why *why);
/* Could all be read that was read of the map so far? If not, some of it is zeros: its file was cut, or its disk fails. */
bool models_map_whole(const struct models_map *map);
/* Reads so many bytes from there on, which are to be sent, and asks that. */
bool models_map_reads(const struct models_map *map, uint64_t at, uint64_t len);
/* Is the file behind a map still the one that was hashed, and could the map be read? For who has read of it what must not be wrong.
 * ERR_CORRUPT, ERR_IO. */
ERR_MUST_USE enum err models_unchanged(
    struct models *m, const struct models_map *map, struct why *why);
/* Somebody says that he was sent a model that does not match: it is hashed, unless one said so within five minutes; then ERR_OK. As
 * models_check. */
ERR_MUST_USE enum err models_doubt(struct models *m, const uint8_t id[32], struct why *why);

/* Writes a model from header and data durably; id receives its hash. */
ERR_MUST_USE enum err models_put(struct models *m, const void *header, size_t header_len,
    const void *data, uint64_t data_len, uint8_t id[32], struct why *why);
/*
 * A file that comes piece by piece, so that nobody holds it whole: begin, add as often as one likes, end, keep; then drop, which is also
 * the end of one that is not kept. It is written under a temporary name and hashed as it comes, and synced now and then, so that no
 * other's sync has to wait for all of it. ERR_CLOSED if the program is to end.
 */
struct models_file;
enum models_kind { MODELS_KIND_MODEL, MODELS_KIND_STATE, MODELS_KIND_DIFFERENCE };
ERR_MUST_USE enum err models_file_begin(
    struct models *m, struct models_file **out, struct why *why);
ERR_MUST_USE enum err models_file_add(
    struct models_file *f, const void *data, uint64_t len, struct why *why);
/* Its bytes are durable; hash receives theirs. */
ERR_MUST_USE enum err models_file_end(struct models_file *f, uint8_t hash[32], struct why *why);
/* And so is its name. A difference has that of the model that it leads to, and all others their hash's. */
ERR_MUST_USE enum err models_file_keep(
    struct models_file *f, enum models_kind kind, const uint8_t id[32], struct why *why);
void models_file_drop(struct models_file *f); /* NULL is legal */

/* A path for a file under construction in the same folder (unique), and its adoption under `id` after the caller hashed it. */
void models_temp_path(struct models *m, char *out, size_t room);
ERR_MUST_USE enum err models_adopt(
    struct models *m, int fd, const char *temp, const uint8_t id[32], struct why *why);
/* Is its file there? For a transaction that writes its row: ERR_CLOSED if it has just been removed as an old one (retention.h), and
 * whoever wants it back comes again. */
ERR_MUST_USE enum err models_still(struct models *m, const uint8_t id[32], struct why *why);
/* The difference that leads to it goes with it. */
ERR_MUST_USE enum err models_delete(struct models *m, const uint8_t id[32]);

/* What becomes of a file found at start. */
enum models_fate {
	MODELS_STAYS,
	MODELS_GOES,
	MODELS_LEFTOVER, /* goes, as the leftover of a crash, if no other is lost: else the database is not the one of these files */
	MODELS_LOST, /* set aside */
};
typedef enum models_fate models_judge(void *ctx, const uint8_t id[32], bool state);
/* At start, before any other thread: judges models and optimizer states and does as it is told. Differences go with their models, and
 * with lost ones, too. *lost: how many files of this state were found lost before, and then also those set aside here, in `aside`. */
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
/* Maps a state as bytes; released as a model. ERR_NOTFOUND, ERR_CORRUPT. */
ERR_MUST_USE enum err models_state_map(
    struct models *m, const uint8_t hash[32], struct models_map **out, struct why *why);
/* Does the file's content match? An all-zero hash is no state and is sound. ERR_NOTFOUND, ERR_CORRUPT. */
ERR_MUST_USE enum err models_state_check(struct models *m, const uint8_t hash[32], struct why *why);
ERR_MUST_USE enum err models_state_delete(struct models *m, const uint8_t hash[32]);

#define MODELS_DIFFERENCE ".diff"
/* Differences. Fills d->payload_hash and d->tag and writes d with its payload: a file that is ended, to be kept as d->to's. */
ERR_MUST_USE enum err models_difference_write(struct models *m, struct difference *d,
    const void *payload, struct models_file **out, struct why *why);
/* And keeps it. */
ERR_MUST_USE enum err models_difference_put(
    struct models *m, struct difference *d, const void *payload, struct why *why);
/* The head of the difference that leads to this model. ERR_NOTFOUND if there is none, ERR_CORRUPT if it is no such file. */
ERR_MUST_USE enum err models_difference_head(
    struct models *m, const uint8_t to[32], struct difference *out, struct why *why);
/* Maps what leads from one model to another: a difference, or several one behind the other, the oldest first, which are put
 * together in memory, at most MODELS_JOINED_MAX bytes at a time. Released as a model. ERR_NOTFOUND if nothing does, the model itself
 * has no more bytes, or there is no room for several; ERR_CORRUPT if one on the way is damaged. */
#define MODELS_JOINED_MAX ((uint64_t)256 << 20)
ERR_MUST_USE enum err models_difference_get(struct models *m, const uint8_t to[32],
    const uint8_t from[32], struct models_map **out, struct why *why);
ERR_MUST_USE enum err models_difference_delete(struct models *m, const uint8_t to[32]);
/* Is the file behind fd a sound difference that leads to this model? ERR_CORRUPT. */
ERR_MUST_USE enum err models_difference_check(int fd, const uint8_t to[32], struct why *why);

#endif
