#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "cmd.h"
#include "doctor.h"
#include "hex.h"
#include "home.h"
#include "identity_set.h"
#include "print.h"
#include "rekey.h"

#define SOON_S (14 * 86400) /* of a CA */
#define LATE_SHARE \
	6 /* a certificate with less than a sixth of its life left was not renewed in time */
#define BACKDATE (2 * 86400)

/* Why the system lets nobody, or only others, write there. */
static void
say_not_writable(struct cmd_doctor *d, const char *path, const struct stat *st)
{
	if (errno == EROFS)
		cmd_doctor_add(d, "home", CMD_DOCTOR_FAULT, CMD_FAILED,
		    "look into the kernel's log for errors of the disk, then mount it for writing: "
		    "mount -o remount,rw",
		    "%s lies on a file system that is mounted read-only", path);
	else if (errno == EACCES || errno == EPERM)
		cmd_doctor_add(d, "home", CMD_DOCTOR_FAULT, CMD_FAILED,
		    "run this as the user of the agent, or chown the directory",
		    "%s cannot be written by this user (its owner is %u, we are %u, its mode is "
		    "%03o)",
		    path, (unsigned)st->st_uid, (unsigned)geteuid(), (unsigned)st->st_mode & 0777);
	else
		cmd_doctor_add(d, "home", CMD_DOCTOR_FAULT, CMD_FAILED,
		    "fix the disk, or what leads to it", "%s cannot be used: %s", path,
		    strerror(errno));
}

/* Each may be a mount or a link of its own, or somebody else's since the agent was run by hand. */
static void
check_folders(struct cmd_doctor *d)
{
	static const char *const names[] = {
	    "models", "outbox", "residual", "variates", "local", "kept", "work"};
	char path[PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (identity_path(path, d->home, names[i], NULL) == ERR_OK &&
		    stat(path, &st) == 0 && access(path, R_OK | W_OK | X_OK) != 0)
			say_not_writable(d, path, &st);
}

static void
check_directory(struct cmd_doctor *d)
{
	struct stat st;

	if (stat(d->home, &st) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
		cmd_doctor_add(d, "home", CMD_DOCTOR_FAULT, CMD_NOT_FOUND,
		    "rivulet join URL --token-file FILE makes one; or give --home",
		    "%s does not exist", d->home);
		return;
	}
	if (stat(d->home, &st) != 0) {
		cmd_doctor_add(d, "home", CMD_DOCTOR_FAULT, CMD_FAILED,
		    "fix the disk, or what leads to it", "%s: %s", d->home, strerror(errno));
		return;
	}
	if (!S_ISDIR(st.st_mode))
		cmd_doctor_add(d, "home", CMD_DOCTOR_FAULT, CMD_NOT_FOUND, "give --home",
		    "%s is no directory", d->home);
	else if (access(d->home, R_OK | W_OK | X_OK) != 0)
		say_not_writable(d, d->home, &st);
	else if (st.st_mode & 0022)
		cmd_doctor_add(d, "home", CMD_DOCTOR_WARNING, CMD_DENIED, "chmod go-w it",
		    "%s can be written by others (mode %03o)", d->home,
		    (unsigned)st.st_mode & 0777);
	else
		cmd_doctor_add(d, "home", CMD_DOCTOR_FINE, 0, NULL, "%s", d->home);
}

static void
check_agent(struct cmd_doctor *d)
{
	long pid = home_holder(d->home);

	if (pid == 0)
		cmd_doctor_add(
		    d, "agent", CMD_DOCTOR_NOTE, 0, NULL, "no agent runs in this home now");
	else if (pid > 0)
		cmd_doctor_add(
		    d, "agent", CMD_DOCTOR_FINE, 0, NULL, "an agent runs, process %ld", pid);
	else
		cmd_doctor_add(d, "agent", CMD_DOCTOR_FINE, 0, NULL, "an agent runs");
	if (home_has(d->home, HOME_ROTATE))
		cmd_doctor_add(d, "rotation", CMD_DOCTOR_NOTE, 0, NULL,
		    "a new key was asked for; the agent makes it between two tasks");
	else if (rekey_begun(d->home))
		cmd_doctor_add(d, "rotation", CMD_DOCTOR_WARNING, CMD_DENIED,
		    "rivulet rotate goes on with it", "a change of key was begun and not finished");
	if (home_has(d->home, IDENTITY_SET_NEXT) && pid == 0)
		cmd_doctor_add(d, "identity", CMD_DOCTOR_NOTE, 0, NULL,
		    "a new certificate waits; the next start of the agent puts it in place");
}

static void
check_joined(struct cmd_doctor *d)
{
	struct why why = {""};
	enum err e = identity_load(&d->identity, d->home, &why);

	d->joined = !e;
	if (d->joined)
		cmd_doctor_add(d, "identity", CMD_DOCTOR_FINE, 0, NULL,
		    "%s, role %s, device %.16s, %zu coordinator address%s", d->identity.name,
		    d->identity.role, d->identity.device, d->identity.url_count,
		    d->identity.url_count == 1 ? "" : "es");
	else if (identity_set_wiping(d->home))
		cmd_doctor_add(d, "identity", CMD_DOCTOR_FAULT, CMD_NOT_FOUND,
		    "rivulet leave finishes it; then rivulet join",
		    "this home left its coordinator, and that was interrupted");
	else if (e == ERR_NOTFOUND)
		cmd_doctor_add(d, "identity", CMD_DOCTOR_FAULT, CMD_NOT_FOUND,
		    "rivulet join URL --token-file FILE", "this home has not joined a coordinator");
	else
		cmd_doctor_add(d, "identity", CMD_DOCTOR_FAULT, CMD_CORRUPT,
		    "restore the file from a backup, or leave it aside and join again", "%s",
		    why.text);
}

/* By its fingerprint an administrator names it: rivulet device rekey. */
static void
tell_key(struct cmd_doctor *d)
{
	uint8_t id[HASH_LEN];
	char hex[KEY_ID_HEX];

	key_id(id, key_spki(d->held.key));
	hex_encode(hex, id, sizeof(id));
	cmd_doctor_add(d, "key", CMD_DOCTOR_FINE, 0, NULL,
	    "key.pem is private and fits cert.pem; fingerprint %.16s", hex);
}

static void
check_credentials(struct cmd_doctor *d)
{
	struct why why = {""};
	enum err e = credentials_load(&d->held, d->home, &why);

	d->usable = !e;
	if (e == ERR_DENIED)
		cmd_doctor_add(d, "key", CMD_DOCTOR_FAULT, CMD_DENIED,
		    "chmod 600 key.pem; and rivulet rotate, if others may have read it", "%s",
		    why.text);
	else if (strstr(why.text, "does not belong"))
		cmd_doctor_add(d, "key", CMD_DOCTOR_FAULT, CMD_CORRUPT,
		    "put back the files of one device, or rivulet leave --force and join again",
		    "%s", why.text);
	else if (e)
		cmd_doctor_add(d, "identity", CMD_DOCTOR_FAULT,
		    e == ERR_NOTFOUND ? CMD_NOT_FOUND : CMD_CORRUPT,
		    "put the file back, or rivulet leave --force and join again", "%s", why.text);
	else
		tell_key(d);
	if (d->usable && !d->held.has_signer)
		cmd_doctor_add(d, "signer", CMD_DOCTOR_NOTE, 0, NULL,
		    "signer.pem is missing, so that receipts are not checked; the agent gets it by "
		    "renewing its certificate");
}

static void
check_ca(struct cmd_doctor *d, const struct x509_cert *ca, int64_t now)
{
	struct x509_info info;
	uint8_t hash[HASH_LEN];
	char hex[2 * HASH_LEN + 1], span[32];
	int64_t left;

	if (x509_parse(&info, ca, NULL))
		return;
	hash_sha256(hash, ca->der, ca->len);
	hex_encode(hex, hash, sizeof(hash));
	left = info.not_after - now;
	cmd_doctor_span(span, (double)left);
	if (left <= 0)
		cmd_doctor_add(d, "ca", CMD_DOCTOR_FAULT, CMD_DENIED,
		    "replace the coordinator's CA (operators.md), then join again",
		    "the CA %s (%.16s) expired %s ago", info.common_name, hex, span);
	else
		cmd_doctor_add(d, "ca", left < SOON_S ? CMD_DOCTOR_WARNING : CMD_DOCTOR_FINE,
		    left < SOON_S ? CMD_DENIED : 0,
		    left < SOON_S ? "replace the coordinator's CA (operators.md)" : NULL,
		    "CA %s (%.16s), valid for %s", info.common_name, hex, span);
}

/* The coordinator judges by its own clock, and both sides give out and read dates by theirs: which one is wrong nobody can tell from here. */
static void
add_not_yet(struct cmd_doctor *d, const char *begins)
{
	char there[CMD_PRINT_TIME_MAX];

	if (!d->offset_known) {
		cmd_doctor_add(d, "certificate", CMD_DOCTOR_FAULT, CMD_DENIED,
		    "set this machine's clock (is there a network time service?); if it is right, "
		    "the agent renews the certificate as soon as it reaches the coordinator",
		    "cert.pem is not valid yet by this machine's clock: it begins on %s, and was "
		    "given out by a clock that stood ahead, unless this one is behind",
		    begins);
		return;
	}
	cmd_print_time(there, (double)(clock_unix() + d->offset));
	cmd_doctor_add(d, "certificate", CMD_DOCTOR_WARNING, CMD_DENIED,
	    "a running agent renews it within a minute; if that is not the date, set the "
	    "coordinator's clock",
	    "cert.pem begins on %s, and by the coordinator's clock it is %s: it was given out by a "
	    "clock that stood ahead, or the coordinator's is behind",
	    begins, there);
}

static void
add_ended(struct cmd_doctor *d, const char *span, const char *ends)
{
	const struct x509_info *c = &d->held.cert;
	const int64_t here = clock_unix();
	char there[CMD_PRINT_TIME_MAX];

	cmd_print_time(there, (double)(here + d->offset));
	if (d->offset_known && here >= c->not_before && here < c->not_after)
		cmd_doctor_add(d, "certificate", CMD_DOCTOR_WARNING, CMD_DENIED,
		    "a running agent renews it within a minute; if that is not the date, set the "
		    "coordinator's clock, else this machine's",
		    "cert.pem ends on %s, and by the coordinator's clock it is %s; by this "
		    "machine's it is still good",
		    ends, there);
	else
		cmd_doctor_add(d, "certificate", CMD_DOCTOR_WARNING, CMD_DENIED,
		    "the agent renews it by itself as soon as it reaches the coordinator",
		    "cert.pem expired %s ago, on %s", span, ends);
}

void
cmd_doctor_certificate_check(struct cmd_doctor *d)
{
	const struct x509_info *c = &d->held.cert;
	int64_t now = clock_unix() + (d->offset_known ? d->offset : 0);
	int64_t left = c->not_after - now, life = c->not_after - c->not_before;
	char span[32], begins[CMD_PRINT_TIME_MAX], ends[CMD_PRINT_TIME_MAX];

	if (!d->usable)
		return;
	cmd_doctor_span(span, (double)left);
	cmd_print_time(begins, (double)c->not_before);
	cmd_print_time(ends, (double)c->not_after);
	if (now < c->not_before)
		add_not_yet(d, begins);
	else if (left <= 0)
		add_ended(d, span, ends);
	else if (left < (life > BACKDATE ? life - BACKDATE : life) / LATE_SHARE)
		cmd_doctor_add(d, "certificate", CMD_DOCTOR_WARNING, CMD_DENIED,
		    "see the agent's log for certificate.renew-failed; it goes on trying",
		    "cert.pem expires in %s, on %s, and was not renewed yet", span, ends);
	else
		cmd_doctor_add(d, "certificate", CMD_DOCTOR_FINE, 0, NULL,
		    "cert.pem is valid for %s, to %s", span, ends);
	for (size_t i = 0; i < d->held.trust.count; i++)
		check_ca(d, &d->held.trust.ca[i], now);
}

void
cmd_doctor_home_check(struct cmd_doctor *d)
{
	check_directory(d);
	if (d->findings[0].level == CMD_DOCTOR_FAULT && d->findings[0].code == CMD_NOT_FOUND)
		return;
	check_folders(d);
	check_joined(d);
	check_agent(d);
	if (d->joined)
		check_credentials(d);
}
