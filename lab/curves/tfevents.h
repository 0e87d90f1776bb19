#ifndef TFEVENTS_H
#define TFEVENTS_H
#include <stdbool.h>

#include "buf.h"

/*
 * TensorBoard's event files: a row of records, each `length (8, little-endian) | masked CRC-32C of it (4) | bytes | masked CRC-32C of
 * them (4)` (TensorFlow, core/lib/io/record_writer.h), whose bytes are a protobuf message Event (core/util/event.proto). Pure.
 */
#define TFEVENTS_RECORD_MAX (64u << 10) /* bytes of one message */
#define TFEVENTS_FILE_MAX ((uint64_t)1 << 30)

/* CRC-32C (Castagnoli; RFC 3720, appendix B.4); tfevents_mask: the masked form that records have. */
uint32_t tfevents_crc(const void *data, size_t len);
uint32_t tfevents_mask(uint32_t crc);

/* Appends the first record of a file. wall: Unix seconds. */
ERR_MUST_USE enum err tfevents_begin(struct buf *out, double wall);

/* One record with any number of scalars of one step. */
struct tfevents {
	struct buf summary;
	enum err err; /* sticky */
};
void tfevents_init(struct tfevents *t);
void tfevents_deinit(struct tfevents *t);
/* Adds a scalar; value is stored as a float, as TensorBoard's own writers do. */
void tfevents_scalar(struct tfevents *t, const char *tag, double value);
/* Appends the record, unless it holds no scalar, and empties t. */
ERR_MUST_USE enum err tfevents_end(struct buf *out, struct tfevents *t, double wall, uint64_t step);

/* The content of an event file that was written so far. */
struct tfevents_past {
	uint64_t bytes; /* of whole records; bytes behind are a record that a crash cut off */
	uint64_t records;
	bool steps; /* some record has scalars */
	uint64_t last; /* largest step of records with scalars */
};
/* Reads an event file. ERR_CORRUPT if data does not begin as an event file, or if more than one cut-off record at its end is unreadable. */
ERR_MUST_USE enum err tfevents_read(
    struct tfevents_past *past, const uint8_t *data, size_t len, struct why *why);

#endif
