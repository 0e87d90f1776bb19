/* A file of the outbox: the bytes that a killed agent left. Input: the public key (91 bytes), then the file. The name of the
 * task is taken from the manifest, so that everything behind it is reached. */
#include "fuzz.h"
#include "hex.h"
#include "key.h"
#include "outbox.h"
#include "scratch.h"

#define TASK_AT (KEY_SPKI_LEN + 64 + 96) /* RVO1's head, then the manifest's field */

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct outbox o = {.max_bytes = 1 << 20};
	struct outbox_entry entry;
	struct why why = {""};
	char task[OUTBOX_TASK_HEX] = "00000000000000000000000000000000", name[64];

	if (len < KEY_SPKI_LEN)
		return 0;
	if (len >= TASK_AT + 16)
		hex_encode(task, data + TASK_AT, 16);
	snprintf(name, sizeof(name), "%s.delta", task);
	scratch_put(name, data + KEY_SPKI_LEN, len - KEY_SPKI_LEN);
	snprintf(o.dir, sizeof(o.dir), "%s", scratch_get());
	if (outbox_open(&entry, &o, task, NULL, &why) == ERR_OK) {
		if (entry.report_len > REPORT_MAX ||
		    entry.body_at + entry.body_bytes != len - KEY_SPKI_LEN)
			abort();
		outbox_close(&entry);
	} else if (!why.text[0]) {
		abort();
	}
	if (outbox_open(&entry, &o, task, data, &why) == ERR_OK)
		outbox_close(&entry);
	outbox_remove(&o, task);
	return 0;
}
