#include "identity_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "fault.h"
#include "file.h"
#include "hex.h"
#include "home.h"
#include "messages.h"
#include "trust.h"

#define NEXT_MAX (64u << 10)
#define LEFT "device.left.json"

enum err
identity_set_check(
    const struct join_answer *answer, const char *device, const uint8_t *spki, struct why *why)
{
	struct x509_cert cert, signer;
	struct x509_info info;
	struct trust trust;
	enum err e = trust_parse(&trust, answer->ca, why);

	if (!e)
		e = x509_from_pem(&cert, answer->certificate, why);
	if (!e)
		e = x509_parse(&info, &cert, why);
	if (e)
		return e;
	if (strcmp(answer->device, device) != 0)
		return err_set(why, ERR_DENIED, "the answer is for another device");
	if (trust_check(&trust, &cert) || memcmp(info.spki, spki, KEY_SPKI_LEN) != 0)
		return err_set(
		    why, ERR_DENIED, "the certificate that came is not for this device's key");
	if (info.not_after <= info.not_before)
		return err_set(why, ERR_INVALID, "the certificate that came was never valid");
	if (!*answer->signer)
		return ERR_OK;
	e = x509_from_pem(&signer, answer->signer, why);
	if (!e && trust_check(&trust, &signer))
		e = err_set(
		    why, ERR_DENIED, "the key that signs receipts is not certified by the CA");
	return e;
}

enum err
identity_set_stage(const char *home, const struct join_answer *answer, struct why *why)
{
	char path[PATH_MAX];
	struct buf text;

	buf_init(&text, NEXT_MAX);
	enum err e = identity_path(path, home, IDENTITY_SET_NEXT, why);
	if (!e && (e = messages_joined_encode(&text, answer)))
		err_set(why, e, "the new certificate cannot be written: %s", err_name(e));
	FAULT("identity.stage");
	if (!e)
		e = file_write(path, text.data, text.len, 0644, why);
	FAULT("identity.staged");
	buf_deinit(&text);
	return e;
}

static enum err
write_text(const char *home, const char *name, const char *text, struct why *why)
{
	char path[PATH_MAX];
	enum err e = identity_path(path, home, name, why);

	return e ? e : file_write(path, text, strlen(text), 0644, why);
}

static enum err
load_key(struct key **out, const char *home, const char *name, struct why *why)
{
	char path[PATH_MAX];
	enum err e = identity_path(path, home, name, why);

	return e ? e : key_load(out, path, why);
}

/* Is a new key waiting, and is this certificate for it? Then *old is the key it replaces. */
static enum err
find_new_key(const char *home, const struct join_answer *answer, struct key **old, bool *found,
    struct why *why)
{
	struct x509_cert cert;
	struct x509_info info;
	struct key *new = NULL;
	enum err e = load_key(&new, home, IDENTITY_SET_KEY, why);

	*found = false;
	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	e = x509_from_pem(&cert, answer->certificate, why);
	if (!e)
		e = x509_parse(&info, &cert, why);
	*found = !e && memcmp(info.spki, key_spki(new), KEY_SPKI_LEN) == 0;
	key_free(new);
	return e || !*found ? e : load_key(old, home, "key.pem", why);
}

/* device.json changes before the key, while the old key can still be read: deltas that it signed may be waiting. */
static enum err
update_json(
    const char *home, const struct join_answer *answer, const struct key *old, struct why *why)
{
	struct identity id;
	enum err e = identity_load(&id, home, why);

	if (e)
		return e;
	id.renew_after = answer->renew_after;
	snprintf(id.name, sizeof(id.name), "%s", answer->name);
	snprintf(id.role, sizeof(id.role), "%s", answer->role);
	if (old)
		identity_add_previous(&id, key_spki(old));
	return identity_save(&id, home, why);
}

static enum err
swap_key(const char *home, struct why *why)
{
	char from[PATH_MAX], to[PATH_MAX];
	enum err e = identity_path(from, home, IDENTITY_SET_KEY, why);

	if (!e)
		e = identity_path(to, home, "key.pem", why);
	if (e)
		return e;
	if (rename(from, to) != 0)
		return err_errno(why, "rename %s", from);
	return file_sync_dir(home, why);
}

static enum err
put_in_place(const char *home, const struct join_answer *answer, struct why *why)
{
	struct key *old = NULL;
	bool new_key;
	enum err e = find_new_key(home, answer, &old, &new_key, why);

	if (!e)
		e = update_json(home, answer, old, why);
	key_free(old);
	FAULT("identity.json");
	if (!e)
		e = write_text(home, "ca.pem", answer->ca, why);
	FAULT("identity.ca");
	if (!e && *answer->signer)
		e = write_text(home, "signer.pem", answer->signer, why);
	FAULT("identity.signer");
	if (!e)
		e = write_text(home, "cert.pem", answer->certificate, why);
	FAULT("identity.cert");
	if (!e && new_key)
		e = swap_key(home, why);
	FAULT("identity.key");
	return e ? e : home_drop(home, IDENTITY_SET_NEXT, why);
}

enum err
identity_set_apply(const char *home, struct why *why)
{
	struct join_answer *answer;
	char path[PATH_MAX];
	char *text = NULL;
	size_t len;
	enum err e = identity_path(path, home, IDENTITY_SET_NEXT, why);

	if (!e)
		e = file_read(path, NEXT_MAX, &text, &len, why);
	if (e)
		return e == ERR_NOTFOUND ? ERR_OK : e;
	answer = malloc(sizeof(*answer));
	if (!answer)
		e = err_set(why, ERR_NOMEM, "no memory for a certificate");
	else if (messages_joined_decode(answer, text, len, NULL))
		e = home_drop(home, IDENTITY_SET_NEXT, why);
	else
		e = put_in_place(home, answer, why);
	free(answer);
	free(text);
	return e;
}

bool
identity_set_wiping(const char *home)
{
	return home_has(home, LEFT);
}

/* The blocks of a deleted key stay on the disk until they are used again; overwriting is the little that can be done. */
static void
overwrite(const char *home, const char *name)
{
	static char zeros[KEY_PEM_MAX]; /* in no program's file, as a constant would be */
	char path[PATH_MAX];

	if (identity_path(path, home, name, NULL))
		return;
	FILE *f = fopen(path, "r+");
	if (!f)
		return;
	(void)!fwrite(zeros, 1, sizeof(zeros), f);
	fflush(f);
	(void)!fdatasync(fileno(f));
	fclose(f);
}

enum err
identity_set_wipe(const char *home, struct why *why)
{
	static const char *const names[] = {"key.pem", IDENTITY_SET_KEY, "cert.pem", "signer.pem",
	    "ca.pem", IDENTITY_SET_NEXT, HOME_ROTATE, HOME_ROTATE_FAILED, HOME_LAST, LEFT};
	char from[PATH_MAX], to[PATH_MAX];
	enum err e = identity_path(from, home, "device.json", why);

	if (!e)
		e = identity_path(to, home, LEFT, why);
	if (!e && rename(from, to) != 0 && errno != ENOENT)
		e = err_errno(why, "rename %s", from);
	if (!e)
		e = file_sync_dir(home, why);
	FAULT("identity.left");
	for (size_t i = 0; !e && i < sizeof(names) / sizeof(*names); i++) {
		if (i < 2)
			overwrite(home, names[i]);
		e = home_drop(home, names[i], why);
		FAULT("identity.wiped");
	}
	return e;
}
