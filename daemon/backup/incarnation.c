#include "incarnation.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "audit.h"
#include "clock.h"
#include "json.h"
#include "list.h"
#include "log.h"
#include "services.h"
#include "store.h"

struct begin {
	struct services *s;
	uint64_t copied_at; /* Unix seconds; 0: not a copy */
};

/* Raises the incarnation above those of other states that were restored from the same copy, of which this one knows nothing. */
static enum err
raise_it(struct store_db *db, struct begin *b, struct why *why)
{
	double now = clock_wall();
	uint64_t next = b->s->incarnation + 1;

	b->s->incarnation = now > (double)next ? (uint64_t)now : next;
	enum err e = store_meta_put(db, "incarnation", b->s->incarnation);

	if (!e)
		e = store_meta_put(db, "backup", 0);
	if (!e)
		e = store_claims_restored(db);
	if (e)
		return e;
	struct json *facts = json_object();
	json_add_u64(facts, "incarnation", b->s->incarnation);
	json_add_u64(facts, "copied_at", b->copied_at);
	struct audit_event event = {.event = RECORD_COORDINATOR_RESTORED, .facts = facts};
	return audit_append(db, b->s, &event, why);
}

static enum err
read_and_raise(struct store_db *db, void *arg, struct why *why)
{
	struct begin *b = arg;

	enum err e = store_meta_get(db, "incarnation", &b->s->incarnation);
	if (e == ERR_NOTFOUND) {
		b->s->incarnation = 1;
		e = store_meta_put(db, "incarnation", 1);
	}
	if (!e)
		e = store_meta_get(db, "backup", &b->copied_at);
	if (e == ERR_NOTFOUND)
		return ERR_OK;
	return e || b->copied_at == 0 ? e : raise_it(db, b, why);
}

enum err
incarnation_begin(struct services *s, const char *state_dir, struct why *why)
{
	struct begin b = {.s = s};
	char path[PATH_MAX];

	enum err e = store_write(s->store, read_and_raise, &b, why);
	if (e || b.copied_at == 0)
		return e;
	log_event(LOG_LEVEL_WARN, "incarnation.raised", LOG_U("incarnation", s->incarnation),
	    LOG_S("why", "this state was restored from a backup"), LOG_U("copied_at", b.copied_at));
	/* From here on the files differ from the list, and nobody should compare them. */
	snprintf(path, sizeof(path), "%s/%s", state_dir, BACKUP_LIST_NAME);
	unlink(path);
	return ERR_OK;
}
