#include "ready.h"

#include <stdio.h>
#include <time.h>

#include "clock.h"
#include "health.h"
#include "report.h"
#include "services.h"
#include "spool.h"
#include "tasks.h"

#define DATE_MAX 32

static void
print_date(char out[DATE_MAX], int64_t seconds)
{
	time_t t = (time_t)seconds;
	struct tm tm = {.tm_mday = 0};

	gmtime_r(&t, &tm);
	strftime(out, DATE_MAX, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

bool
ready_to_issue(const struct services *s, struct health_report *out)
{
	int64_t now = (int64_t)clock_wall(), ends = s->certificate_ends;
	int64_t begins = s->certificate_begins;
	char date[DATE_MAX], here[DATE_MAX];

	print_date(here, now);
	if (ends && now > ends) {
		print_date(date, ends);
		out->reason = WAIT_CERTIFICATE_EXPIRED;
		out->since_seconds = (double)ends;
		snprintf(out->detail, sizeof(out->detail),
		    "the server certificate ended at %s: give all names to \"rivuletd init "
		    "--name\" and reload; or the clock, %s, is wrong",
		    date, here);
	} else if (now < begins) {
		print_date(date, begins);
		out->reason = WAIT_CLOCK_BEHIND;
		snprintf(out->detail, sizeof(out->detail),
		    "the clock, %s, stands before the certificates, which begin at %s: set the "
		    "clock",
		    here, date);
	}
	return !out->reason;
}

void
ready_report(const struct services *s, struct health_report *out)
{
	health_report(s->health, out);
	if (out->reason || !ready_to_issue(s, out) ||
	    !(spool_full(s->spool, 1) || tasks_spool_full(s->engine)))
		return;
	out->reason = WAIT_SPOOL_FULL;
	snprintf(out->detail, sizeof(out->detail),
	    "the spool's quota has no room for another delta: raise [spool] quota, or stop jobs");
}
