#include "quota.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "file.h"
#include "home.h"
#include "identity.h"

#define TEXT_MAX 128

static const char *const keys[] = {"upload_per_day", "download_per_day"};

/* "DAY UP DOWN", and HELD if there is one. */
static bool
parse(struct quota *q, const char *text)
{
	struct quota r = *q;
	int end = 0;

	if (sscanf(text, "%8" SCNu32 " %" SCNu64 " %" SCNu64 "%n %8" SCNu32 "%n", &r.day,
		&r.used[QUOTA_UP], &r.used[QUOTA_DOWN], &end, &r.held, &end) < 3 ||
	    strcmp(text + end, "\n") != 0 || (r.held && r.held < r.day))
		return false;
	*q = r;
	return true;
}

static enum err
save(const struct quota *q, struct why *why)
{
	char text[TEXT_MAX];

	int n = snprintf(text, sizeof(text), "%" PRIu32 " %" PRIu64 " %" PRIu64, q->day,
	    q->used[QUOTA_UP], q->used[QUOTA_DOWN]);
	snprintf(text + n, sizeof(text) - (size_t)n, q->held ? " %" PRIu32 "\n" : "\n", q->held);
	return home_put(q->home, QUOTA_FILE, text, why);
}

void
quota_init(struct quota *q, const char *home, const uint64_t most[QUOTA_WAYS], uint32_t today)
{
	char path[PATH_MAX];
	char *text = NULL;
	size_t len;

	*q = (struct quota){.home = home, .day = today};
	memcpy(q->most, most, sizeof(q->most));
	if (!most[QUOTA_UP] && !most[QUOTA_DOWN])
		return;
	enum err e = identity_path(path, home, QUOTA_FILE, NULL);
	if (!e)
		e = file_read(path, TEXT_MAX, &text, &len, NULL);
	if (e != ERR_NOTFOUND && (e || !parse(q, text)))
		memcpy(q->used, most, sizeof(q->used));
	free(text);
	quota_turn(q, today);
}

/* Is it the day after that one? */
static bool
follows(uint32_t day, uint32_t before)
{
	struct tm t = {.tm_year = (int)(before / 10000) - 1900,
	    .tm_mon = (int)(before / 100 % 100) - 1,
	    .tm_mday = (int)(before % 100) + 1};

	return timegm(&t) != -1 &&
	    day == (uint32_t)((t.tm_year + 1900) * 10000 + (t.tm_mon + 1) * 100 + t.tm_mday);
}

void
quota_turn(struct quota *q, uint32_t today)
{
	if (today == q->day)
		return;
	const bool back = today < q->day;
	struct why ignored;
	/* On the way to the day from which the clock was set back. */
	const bool held = today == q->held || (today < q->held && !follows(today, q->day));

	if (back && q->day > q->held)
		q->held = q->day;
	q->day = today;
	/* Otherwise each start would find the later day, and none that has passed. */
	if (back && (q->most[QUOTA_UP] || q->most[QUOTA_DOWN]))
		(void)!save(q, &ignored);
	if (back || held)
		return;
	q->held = 0;
	memset(q->used, 0, sizeof(q->used));
	memset(q->refused, 0, sizeof(q->refused));
}

enum err
quota_charge(struct quota *q, enum quota_way way, uint64_t bytes, struct why *why)
{
	if (!q->most[way] || bytes == 0)
		return ERR_OK;
	uint64_t left = q->used[way] < q->most[way] ? q->most[way] - q->used[way] : 0;
	if (bytes > left) {
		q->refused[way] = true;
		return err_set(why, ERR_LIMIT, "%s: %" PRIu64 " bytes do not fit into %" PRIu64,
		    keys[way], bytes, left);
	}
	q->used[way] += bytes;
	enum err e = save(q, why);
	if (e)
		q->used[way] -= bytes;
	return e;
}

void
quota_refund(struct quota *q, enum quota_way way, uint64_t bytes)
{
	struct why ignored;

	if (!q->most[way] || bytes == 0)
		return;
	q->used[way] -= bytes < q->used[way] ? bytes : q->used[way];
	(void)!save(q, &ignored);
}

bool
quota_over(const struct quota *q, enum quota_way way)
{
	return q->most[way] && (q->refused[way] || q->used[way] >= q->most[way]);
}
