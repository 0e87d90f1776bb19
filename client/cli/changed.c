#include "changed.h"

#include <stdio.h>
#include <unistd.h>

#include "admin.h"
#include "contact.h"
#include "json.h"

static void
rest(uint32_t ms)
{
	usleep((useconds_t)ms * 1000);
}

/* Asks for the next change, and takes what comes of it. */
static void
ask(struct cmd_admin *a, struct cmd_changed *c, uint32_t most_s)
{
	struct json *doc = NULL;
	struct why why;
	char path[96];

	snprintf(path, sizeof(path), "/v1/changes?after=%llu&wait=%u", (unsigned long long)c->after,
	    most_s);
	a->hasty = true;
	enum err e = cmd_admin_call(a, "GET", path, NULL, &doc, &why);
	a->hasty = false;
	if (a->problem == PROBLEM_TOO_MANY_REQUESTS)
		rest(CMD_CHANGED_FULL_MS);
	else if (e == ERR_NOTFOUND || e == ERR_DENIED || e == ERR_INVALID)
		c->untold = true;
	else if (!e && !json_u64(json_get(doc, "change"), &c->after))
		c->untold = true;
	json_free(doc);
}

void
cmd_changed_wait(
    struct cmd_admin *a, struct cmd_changed *c, bool away, const struct cmd_changed_pause *p)
{
	if (away) {
		/* What comes back may be another program. */
		*c = (struct cmd_changed){.after = 0};
		usleep(CMD_CONTACT_US);
		return;
	}
	rest(c->untold || p->poll_ms > CMD_CHANGED_LEAST_MS ? p->poll_ms : CMD_CHANGED_LEAST_MS);
	if (!c->untold)
		ask(a, c, p->most_s);
}
