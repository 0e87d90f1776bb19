/* What a program that stays writes to the agent, in pieces: the first byte is their length. The same lines come out as in one piece. */
#include <string.h>

#include "fuzz.h"
#include "lines.h"
#include "protocol.h"

struct seen {
	size_t lines, done, bytes;
};

static enum err
each(void *context, const char *line, size_t len)
{
	struct seen *s = context;
	struct protocol_line said;
	struct why why = {""};
	enum err e = protocol_read(&said, line, len, &why);

	require(len <= PROTOCOL_MAX && line[len] == '\0');
	require(
	    e ? why.text[0] && said.kind == PROTOCOL_OTHER : strlen(said.task) < PROTOCOL_TASK_MAX);
	s->lines++;
	s->bytes += len;
	s->done += said.kind == PROTOCOL_DONE;
	return ERR_OK;
}

static struct seen
feed(const char *data, size_t len, size_t piece)
{
	struct seen s = {0, 0, 0};
	struct lines l;
	enum err e = ERR_OK;

	lines_init(&l, PROTOCOL_MAX);
	for (size_t at = 0; !e && at < len; at += piece)
		e = lines_feed(&l, data + at, len - at < piece ? len - at : piece, each, &s);
	require(e == ERR_OK || e == ERR_LIMIT || e == ERR_NOMEM);
	lines_deinit(&l);
	return s;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len < 1)
		return 0;
	const char *text = (const char *)data + 1;
	struct seen whole = feed(text, len - 1, len), pieces = feed(text, len - 1, data[0] + 1u);

	require(whole.lines == pieces.lines && whole.done == pieces.done &&
	    whole.bytes == pieces.bytes);
	return 0;
}
