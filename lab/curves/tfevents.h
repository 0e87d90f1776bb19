#ifndef TFEVENTS_H
#define TFEVENTS_H
#include <stdbool.h>

#include "buf.h"

/*
 * TensorBoard's event files: a row of records, each `length (8, little-endian) | masked CRC-32C of it (4) | bytes | masked CRC-32C of
 * them (4)` (TensorFlow, core/lib/io/record_writer.h), whose bytes are a protobuf message Event (core/util/event.proto). Pure.
 */
#define TFEVENTS_RECORD_MAX (64u << 10) /* of one message */
#define TFEVENTS_FILE_MAX ((uint64_t)1 << 30)

/* CRC-32C (Castagnoli; RFC 3720, appendix B.4); and as the records hold it. */
uint32_t tfevents_crc(const void *data, size_t len);
uint32_t tfevents_mask(uint32_t crc);

/* A file's first record. wall: Unix seconds. */
ERR_MUST_USE enum err tfevents_begin(struct buf *out, double wall);

/* One record with any number of scalars of one step. */
struct tfevents {
	struct buf summary;
	enum err err; /* sticky */
};
void tfevents_init(struct tfevents *t);
void tfevents_deinit(struct tfevents *t);
/* value goes as a float, as TensorBoard's own writers have it. */
void tfevents_scalar(struct tfevents *t, const char *tag, double value);
/* Appends the record, unless it holds no scalar, and empties t. */
ERR_MUST_USE enum err tfevents_end(struct buf *out, struct tfevents *t, double wall, uint64_t step);

/* What a file holds that was written so far. */
struct tfevents_past {
	uint64_t bytes; /* of whole records: what lies behind was cut off by a crash */
	uint64_t records;
	bool steps; /* some record has scalars */
	uint64_t last; /* largest step of those */
};
/* ERR_CORRUPT if it does not begin as an event file does, or more is unreadable than one record that was cut off. */
ERR_MUST_USE enum err tfevents_read(
    struct tfevents_past *past, const uint8_t *data, size_t len, struct why *why);

#endif
