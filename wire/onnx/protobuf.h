#ifndef PROTOBUF_H
#define PROTOBUF_H
#include <stdint.h>

#include "buf.h"

/*
 * Writes messages of Protocol Buffers (protobuf.dev/programming-guides/encoding): lengths and whole numbers as varints in their
 * shortest form. Fields written by ascending number give the same bytes as other encoders. Within wire/onnx.
 *
 * The first error sticks (ERR_LIMIT past the buffer's maximum, or ERR_NOMEM); later calls do nothing.
 */
struct protobuf {
	struct buf *out;
	enum err err;
};

void protobuf_u64(struct protobuf *p, uint32_t field, uint64_t v);
void protobuf_i64(struct protobuf *p, uint32_t field, int64_t v);
void protobuf_f32(struct protobuf *p, uint32_t field, float v);
void protobuf_bytes(struct protobuf *p, uint32_t field, const void *data, size_t len);
void protobuf_string(struct protobuf *p, uint32_t field, const char *text);
/* Appends fields that are encoded already. */
void protobuf_raw(struct protobuf *p, const void *data, size_t len);
/* Begins and ends a message as a field of the outer one: what is written between the two calls. `at` is what protobuf_open returned. */
size_t protobuf_open(struct protobuf *p, uint32_t field);
void protobuf_close(struct protobuf *p, size_t at);

#endif
