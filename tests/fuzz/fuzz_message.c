/*
 * The first byte picks a decoder, the rest is its text. What decodes must encode, and its encoding must decode to the
 * same encoding.
 */

#include "buf.h"
#include "fuzz.h"
#include "messages.h"

union message {
	struct offer offer;
	struct task task;
	struct report report;
	struct join_request join;
	struct join_answer joined;
	struct abort_request aborted;
	struct problem problem;
	struct token_request token;
};

/* Decodes the text and appends its encoding to out. */
static enum err
pass(char kind, union message *m, const char *text, size_t len, struct buf *out)
{
	struct why why;
	enum err e;

	switch (kind) {
	case 'o':
		e = messages_offer_decode(&m->offer, text, len, &why);
		e = e ? e : messages_offer_encode(out, &m->offer);
		messages_offer_deinit(&m->offer);
		return e;
	case 't':
		e = messages_task_decode(&m->task, text, len, &why);
		e = e ? e : messages_task_encode(out, &m->task);
		messages_task_deinit(&m->task);
		return e;
	case 'r':
		e = messages_report_decode(&m->report, text, len, &why);
		/* A text at the limit may grow past it by its escapes and digits. */
		e = e ? e : messages_report_encode(out, &m->report);
		return e;
	case 'j':
		e = messages_join_decode(&m->join, text, len, &why);
		return e ? e : messages_join_encode(out, &m->join);
	case 'J':
		e = messages_joined_decode(&m->joined, text, len, &why);
		return e ? e : messages_joined_encode(out, &m->joined);
	case 'a':
		e = messages_abort_decode(&m->aborted, text, len, &why);
		return e ? e : messages_abort_encode(out, &m->aborted);
	case 'p':
		e = messages_problem_decode(&m->problem, text, len, &why);
		return e ? e : messages_problem_encode(out, &m->problem);
	case 'k':
		e = messages_token_decode(&m->token, text, len, &why);
		return e ? e : messages_token_encode(out, &m->token);
	default:
		return ERR_UNSUPPORTED;
	}
}

static void
token_text(const uint8_t *data, size_t len)
{
	char text[TOKEN_TEXT_MAX], back[TOKEN_TEXT_MAX];
	struct token t;

	if (len >= sizeof(text))
		return;
	memcpy(text, data, len);
	text[len] = '\0';
	if (messages_token_parse(&t, text))
		return;
	messages_token_text(back, &t);
	if (strcmp(text, back) != 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	union message *m;
	struct buf first, second;

	if (len == 0)
		return 0;
	if (data[0] == 'T') {
		token_text(data + 1, len - 1);
		return 0;
	}
	m = malloc(sizeof(*m));
	if (!m)
		return 0;
	buf_init(&first, 1 << 26);
	buf_init(&second, 1 << 26);
	enum err e = pass((char)data[0], m, (const char *)data + 1, len - 1, &first);
	if (!e &&
	    (pass((char)data[0], m, first.data, first.len, &second) ||
		strcmp(first.data, second.data) != 0))
		abort();
	buf_deinit(&first);
	buf_deinit(&second);
	free(m);
	return 0;
}
