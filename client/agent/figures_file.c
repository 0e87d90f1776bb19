#include "figures_file.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backoff.h"
#include "buf.h"
#include "file.h"
#include "version.h"
#include "wait_reason.h"

#define TEXT_MAX (64u << 10)

/* --- the text */

static enum err
put_head(struct buf *out, const char *name, const char *type, const char *help)
{
	return buf_printf(out, "# HELP rivulet_agent_%s %s\n# TYPE rivulet_agent_%s %s\n", name,
	    help, name, type);
}

static enum err
put_value(struct buf *out, const char *name, double value)
{
	if (isnan(value))
		return buf_printf(out, "rivulet_agent_%s NaN\n", name);
	return buf_printf(out, "rivulet_agent_%s %.16g\n", name, value);
}

static enum err
put_tasks(struct buf *out, const struct device_figures *f)
{
	static const char *const names[] = {
	    [DEVICE_NO_TASK] = "none", [DEVICE_TRAINS] = "train", [DEVICE_EVALUATES] = "evaluate"};
	enum err e = put_head(out, "task", "gauge", "1 for the kind of task in hand.");

	for (unsigned i = 0; !e && i < sizeof(names) / sizeof(*names); i++)
		e = buf_printf(out, "rivulet_agent_task{task=\"%s\"} %d\n", names[i], f->task == i);
	return e;
}

/* A series each, whatever the reason is now: a set that never grows. */
static enum err
put_reasons(struct buf *out, const struct device_figures *f)
{
	static const char *const names[] = {[STANDING_UNREACHABLE] = "unreachable",
	    [STANDING_SUSPENDED] = "suspended",
	    [STANDING_REVOKED] = "revoked",
	    [STANDING_LEFT] = "left",
	    [STANDING_REFUSED] = "refused"};
	const bool waits = f->standing == STANDING_GOOD;
	enum err e = put_head(
	    out, "waiting", "gauge", "1 for the reason why there is no task (docs/operators.md).");

	if (!e)
		e = buf_printf(out, "rivulet_agent_waiting{reason=\"none\"} %d\n",
		    waits && f->reason == WAIT_NONE);
	for (unsigned i = STANDING_UNREACHABLE; !e && i < sizeof(names) / sizeof(*names); i++)
		e = buf_printf(
		    out, "rivulet_agent_waiting{reason=\"%s\"} %d\n", names[i], f->standing == i);
	for (enum wait_reason r = WAIT_NONE + 1; !e && r <= WAIT_UNKNOWN; r++)
		e = buf_printf(out, "rivulet_agent_waiting{reason=\"%s\"} %d\n",
		    r == WAIT_UNKNOWN ? "other" : wait_reason_name(r), waits && f->reason == r);
	return e;
}

enum err
figures_file_print(struct buf *out, const struct figures_file *m, const struct device_figures *f)
{
	const struct {
		const char *name, *type, *help;
		double value;
	} table[] = {
	    {"last_contact_timestamp_seconds", "gauge",
		"When the coordinator last answered; NaN: not since the start.",
		f->contact > 0 ? f->contact : (double)NAN},
	    {"start_time_seconds", "gauge", "When the agent started.", m->start},
	    {"rounds_total", "counter",
		"Deltas and reports that the coordinator has taken, since the start or the last "
		"reload.",
		(double)f->rounds},
	    {"sent_bytes_total", "counter",
		"Bytes sent, without TLS, since the start or the last reload.", (double)f->sent},
	    {"received_bytes_total", "counter",
		"Bytes received, without TLS, since the start or the last reload.",
		(double)f->received},
	    {"outbox_deltas", "gauge", "Deltas that wait to be sent.", (double)f->outbox_deltas},
	    {"outbox_bytes", "gauge", "Bytes of the deltas that wait to be sent.",
		(double)f->outbox_bytes},
	    {"certificate_expiry_timestamp_seconds", "gauge",
		"When the certificate of this device ends.", (double)f->certificate_end},
	};
	enum err e = put_head(out, "info", "gauge", "1, with the build of the agent.");

	if (!e)
		e = buf_printf(out, "rivulet_agent_info{version=\"%s\"} 1\n", version_text());
	for (size_t i = 0; !e && i < sizeof(table) / sizeof(*table); i++) {
		e = put_head(out, table[i].name, table[i].type, table[i].help);
		if (!e)
			e = put_value(out, table[i].name, table[i].value);
	}
	if (!e)
		e = put_tasks(out, f);
	return e ? e : put_reasons(out, f);
}

/* --- the file */

/* Its reader is another user's, whatever the umask. Not synced: what a crash leaves is old within seconds. */
static enum err
write_all(const char *temp, const struct buf *text)
{
	int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

	if (fd < 0)
		return err_errno(NULL, "create");
	enum err e = file_pwrite(fd, text->data, text->len, 0);
	if (!e && fchmod(fd, 0644) != 0)
		e = err_errno(NULL, "mode");
	if (close(fd) != 0 && !e)
		e = err_errno(NULL, "close");
	return e;
}

enum err
figures_file_write(const char *path, const struct buf *text, struct why *why)
{
	char temp[PATH_MAX];
	int n = snprintf(temp, sizeof(temp), "%s.tmp-%d", path, (int)getpid());

	if (n < 0 || (size_t)n >= sizeof(temp))
		return err_set(why, ERR_LIMIT, "path too long: %.100s", path);
	enum err e = write_all(temp, text);
	if (e)
		err_errno(why, "write %s", temp);
	else if (rename(temp, path) != 0)
		e = err_errno(why, "rename %s", temp);
	if (e)
		(void)unlink(temp);
	return e;
}

static void
write_file(struct figures_file *m, struct rivulet *r)
{
	const char *path = device_settings(r)->metrics_file;
	struct why why = {""};
	struct buf text;

	buf_init(&text, TEXT_MAX);
	enum err e = figures_file_print(&text, m, &m->last);
	if (e)
		err_set(&why, e, "%s: %s", path, err_name(e));
	else
		e = figures_file_write(path, &text, &why);
	buf_deinit(&text);
	if (e && !m->failed)
		events_emit(device_events(r), EVENTS_WARN, "metrics.failed",
		    EVENTS_PAIRS(EVENTS_S("reason", why.text)));
	m->failed = e != ERR_OK;
}

void
figures_file_tick(struct figures_file *m, struct rivulet *r)
{
	const struct device_figures last = m->last;
	const double now = backoff_now();

	if (!*device_settings(r)->metrics_file)
		return;
	device_state(r, &m->last);
	if (now < m->next_at && m->last.task == last.task && m->last.reason == last.reason &&
	    m->last.standing == last.standing)
		return;
	m->next_at = now + FIGURES_FILE_EVERY_S;
	device_count(r, &m->last);
	/* A reload begins another session. */
	if (m->last.contact <= 0)
		m->last.contact = last.contact;
	write_file(m, r);
}
