#ifndef PROTOBUF_H
#define PROTOBUF_H
#include <stdint.h>

#include "buf.h"

/*
 * Messages of Protocol Buffers, written (protobuf.dev/programming-guides/encoding): lengths and whole numbers as varints in their
 * shortest form. Who writes fields by ascending number gets the bytes that other encoders make. Within wire/onnx.
 *
 * The first error sticks, ERR_LIMIT past the buffer's maximum or ERR_NOMEM; after it calls do nothing.
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
/* Fields that are bytes already. */
void protobuf_raw(struct protobuf *p, const void *data, size_t len);
/* A message within: what is written until protobuf_close, which takes what protobuf_open gave. */
size_t protobuf_open(struct protobuf *p, uint32_t field);
void protobuf_close(struct protobuf *p, size_t at);

#endif
