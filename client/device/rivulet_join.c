#include <stdio.h>
#include <string.h>

#include "handle_inside.h"
#include "join.h"
#include "rivulet.h"

static bool
is_cancelled(void *context)
{
	const struct rivulet_join_options *o = *(const struct rivulet_join_options **)context;

	return o->cancel && o->cancel(o->context) != 0;
}

static void
tell(struct rivulet_joined *out, const struct identity *id, enum join_state state, const char *home)
{
	static const int states[] = {[JOIN_NEW] = RIVULET_JOIN_NEW,
	    [JOIN_ALREADY] = RIVULET_JOIN_ALREADY,
	    [JOIN_AGAIN] = RIVULET_JOIN_AGAIN};
	_Static_assert(sizeof(out->device) == sizeof(id->device) &&
		sizeof(out->name) == sizeof(id->name) && sizeof(out->role) == sizeof(id->role) &&
		sizeof(out->urls) == sizeof(id->urls) && sizeof(out->home) == PATH_MAX,
	    "what rivulet.h has room for");

	out->state = states[state];
	out->url_count = (unsigned)id->url_count;
	memcpy(out->device, id->device, sizeof(out->device));
	memcpy(out->name, id->name, sizeof(out->name));
	memcpy(out->role, id->role, sizeof(out->role));
	memcpy(out->urls, id->urls, sizeof(out->urls));
	snprintf(out->home, sizeof(out->home), "%s", home);
}

int
rivulet_join(struct rivulet_joined *out, const struct rivulet_join_options *options, char *why,
    size_t why_size)
{
	struct why reason = {""};
	char home[PATH_MAX];
	struct identity id = {.url_count = 0};
	enum join_state state;

	memset(out, 0, sizeof(*out));
	const struct join_options join = {.url = options->url ? options->url : "",
	    .home = home,
	    .name = options->name,
	    .token = options->token,
	    .cancel = is_cancelled,
	    .context = &options};
	enum err e = identity_home(home, options->home, &reason);
	if (!e)
		e = join_run(&id, &state, &join, &reason);
	if (!e) {
		tell(out, &id, state, home);
		join_remark(&reason, &id, state);
	} else if (!*reason.text) {
		snprintf(reason.text, sizeof(reason.text), "%s", err_name(e));
	}
	if (why && why_size)
		snprintf(why, why_size, "%s", reason.text);
	return e == ERR_EXISTS ? RIVULET_STATE : handle_error(e);
}
