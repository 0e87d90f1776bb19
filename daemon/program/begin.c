#include "begin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fault.h"
#include "health.h"
#include "log.h"
#include "notify.h"
#include "permission.h"
#include "seal.h"

#define AGAIN_S 2

bool
begin_passes(enum err e)
{
	/* A lock or socket that another process holds goes with it; permissions do not mend themselves. */
	return e == ERR_EXISTS || (health_passes(e) && e != ERR_DENIED);
}

/* ERR_IO if the directory has neither keys nor a database: it may be a mount point without its file system, in which nothing may be
 * written. */
static enum err
look_for_state(const char *dir, struct why *why)
{
	char keys[CONFIG_PATH_MAX + 16], database[CONFIG_PATH_MAX + 16];

	snprintf(keys, sizeof(keys), "%s/keys", dir);
	snprintf(database, sizeof(database), "%s/rivulet.db", dir);
	if (access(keys, F_OK) == 0 || access(database, F_OK) == 0)
		return ERR_OK;
	if (errno == EACCES)
		return err_errno(why, "look into %.120s", dir);
	return err_set(why, ERR_IO,
	    "%.120s has neither keys nor a database: is its file system mounted? If it is new, run "
	    "\"rivuletd init\"",
	    dir);
}

/* Brings the coordinator up once. seal_close comes after look_for_state: before the state's file system is mounted, the sandbox would be
 * for the directory below it. */
static enum err
bring_up(struct setup **out, const struct config *config, struct answers *answers, bool *sealed,
    struct why *why)
{
	enum err e = look_for_state(config->state_dir, why);

	FAULT("start.begin");
	if (!e && !*sealed)
		e = seal_close(config, why);
	*sealed |= !e;
	if (!e)
		e = setup_new(out, config, answers, why);
	if (!e)
		e = setup_start(*out, why);
	if (e) {
		setup_free(*out);
		*out = NULL;
	}
	return permission_explain(config->state_dir, e, why);
}

/* Waits until the next try. False: a signal asked the program to end. */
static bool
rest(const sigset_t *signals)
{
	const struct timespec again = {AGAIN_S, 0};
	int sig = sigtimedwait(signals, NULL, &again);

	return sig != SIGTERM && sig != SIGINT;
}

enum err
begin_setup(struct setup **out, const struct config *config, struct answers *answers,
    const sigset_t *signals, struct why *why)
{
	struct why said = {""};
	bool sealed = false;
	enum err e;

	*out = NULL;
	while ((e = bring_up(out, config, answers, &sealed, why)) && begin_passes(e) &&
	    getenv("NOTIFY_SOCKET")) {
		if (strcmp(said.text, why->text) != 0)
			log_event(LOG_LEVEL_ERROR, "start.waits", LOG_S("why", why->text));
		said = *why;
		notify_send("EXTEND_TIMEOUT_USEC=60000000\nSTATUS=waits; the log says for what");
		if (!rest(signals))
			return err_set(why, ERR_CLOSED, "the coordinator stops");
	}
	return e;
}
