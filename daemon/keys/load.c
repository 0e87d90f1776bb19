#include "hash.h"
#include "keys.h"
#include "shared.h"

/* What a start reads of keys/, and whether it fits together. */

static void
end_ca(void *ca)
{
	keys_free_ca(ca);
}

enum err
keys_load(const char *state_dir, struct shared **shared, struct key **sign_key,
    uint8_t task_key[32], struct why *why)
{
	struct services_ca *ca = NULL;
	enum err e = keys_load_ca(state_dir, &ca, why);

	*shared = NULL;
	*sign_key = NULL;
	if (!e)
		e = shared_new(shared, ca, end_ca);
	if (!e)
		e = keys_load_key(state_dir, "sign.key", sign_key, why);
	if (!e)
		e = keys_check_pair(state_dir, "sign", *sign_key, &ca->signer, why);
	if (!e)
		e = keys_load_task_key(state_dir, task_key, why);
	if (e)
		keys_free(shared, sign_key);
	return e;
}

void
keys_free(struct shared **shared, struct key **sign_key)
{
	shared_free(*shared);
	key_free(*sign_key);
	*shared = NULL;
	*sign_key = NULL;
}

enum err
keys_check(const char *state_dir, struct services_ca **out, struct why *why)
{
	struct services_tls server = {.key = NULL};
	struct shared *shared;
	struct key *sign_key;
	struct services_ca *ca = NULL;
	uint8_t task_key[32];

	enum err e = keys_load(state_dir, &shared, &sign_key, task_key, why);
	if (e)
		return e;
	hash_wipe(task_key, sizeof(task_key));
	keys_free(&shared, &sign_key);
	e = keys_load_ca(state_dir, &ca, why);
	if (!e)
		e = keys_load_server(state_dir, ca, &server, why);
	key_free(server.key);
	if (e)
		keys_free_ca(ca);
	else
		*out = ca;
	return e;
}
