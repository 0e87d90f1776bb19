#include "find.h"

#include <stdio.h>
#include <string.h>

#include "print.h"
#include "states.h"

static bool
job_lives(const struct json *job)
{
	return !states_job_over(states_job_find(json_string(json_get(job, "state"))));
}

/* A name is free again when its device is revoked or has left. */
static bool
device_lives(const struct json *device)
{
	enum device_state state = states_device_find(json_string(json_get(device, "state")));

	return state == DEVICE_ACTIVE || state == DEVICE_SUSPENDED;
}

static const struct kind {
	const char *noun, *path, *list;
	const char *id; /* the member that holds it */
	size_t digits;
	const char *command; /* that shows ids */
	bool (*lives)(const struct json *item); /* does it hold its name? NULL: it has none */
	const char *age; /* of names that nobody holds the latest by this; NULL: none is */
} kinds[] = {
    [CMD_FIND_JOB] = {"job", "/v1/jobs", "jobs", "job", 32, "job list --all", job_lives,
	"created_at"},
    [CMD_FIND_DEVICE] = {"device", "/v1/devices", "devices", "device", 64, "device list",
	device_lives, NULL},
    [CMD_FIND_MODEL] = {"model", "/v1/jobs", "jobs", "model", 64, "job list --all", NULL, NULL},
    [CMD_FIND_TOKEN] = {"token", "/v1/tokens", "tokens", "id", 16, "token list", NULL, NULL},
};

struct candidate {
	const struct json *item;
	size_t fits;
	bool lives;
};

static const char *
id_of(const struct kind *k, const struct json *item)
{
	const char *id = json_string(json_get(item, k->id));

	return id && strlen(id) == k->digits ? id : "";
}

/* Several jobs may have one model. */
static void
note_id(struct candidate *c, const struct kind *k, const struct json *item, const char *word)
{
	const char *id = id_of(k, item);

	if (!*word || strncmp(id, word, strlen(word)) != 0 ||
	    (c->item && strcmp(id_of(k, c->item), id) == 0))
		return;
	c->item = item;
	c->fits++;
}

static double
age_of(const struct kind *k, const struct json *item)
{
	double age = 0;

	if (k->age)
		(void)json_double(json_get(item, k->age), &age);
	return age;
}

static void
note_name(struct candidate *c, const struct kind *k, const struct json *item, const char *word)
{
	const char *name = json_string(json_get(item, "name"));

	if (!k->lives || !name || strcmp(name, word) != 0)
		return;
	struct candidate own = {item, 1, k->lives(item)};
	if (c->item && own.lives == c->lives && (own.lives || !k->age)) {
		c->fits++;
		return;
	}
	bool later = own.lives == c->lives && age_of(k, item) > age_of(k, c->item);
	if (!c->item || later || (own.lives && !c->lives))
		*c = own;
}

enum err
cmd_find_in(const struct json *list, enum cmd_find_kind kind, const char *word,
    const struct json **out, struct why *why)
{
	const struct kind *k = &kinds[kind];
	struct candidate id = {.fits = 0}, name = {.fits = 0};

	for (const struct json *item = json_first(list); item; item = json_next(item)) {
		note_id(&id, k, item, word);
		note_name(&name, k, item, word);
	}
	/* Short names that happen to be hex digits are names. */
	if (name.fits > 0 && (strlen(word) < CMD_PRINT_ID_SHOWN || name.item == id.item))
		id.fits = 0;
	*out = id.fits > 0 ? id.item : name.item;
	if (id.fits + name.fits > 1)
		return err_set(why, ERR_INVALID, "%zu %ss fit \"%.60s\"; give the id (rivulet %s)",
		    id.fits + name.fits, k->noun, word, k->command);
	return *out ? ERR_OK : err_set(why, ERR_NOTFOUND, "no %s \"%.60s\"", k->noun, word);
}

/* Those that jobs show: the present one of each, and its best. */
static struct json *
shown_models(const struct json *jobs)
{
	struct json *models = json_array();

	for (const struct json *j = json_first(jobs); j; j = json_next(j)) {
		const struct json *best = json_get(j, "best");
		json_push(models, json_copy(j));
		if (best)
			json_push(models, json_copy(best));
	}
	return models;
}

enum err
cmd_find(struct cmd_admin *a, enum cmd_find_kind kind, const char *word, char id[CMD_FIND_ID],
    struct why *why)
{
	const struct kind *k = &kinds[kind];
	const struct json *item;
	struct json *doc = NULL, *models = NULL;

	if (strlen(word) == k->digits && word[strspn(word, "0123456789abcdef")] == '\0') {
		memcpy(id, word, k->digits + 1);
		return ERR_OK;
	}
	enum err e = cmd_admin_call(a, "GET", k->path, NULL, &doc, why);
	if (!e && kind == CMD_FIND_MODEL)
		models = shown_models(json_get(doc, k->list));
	if (!e)
		e = cmd_find_in(models ? models : json_get(doc, k->list), kind, word, &item, why);
	if (!e)
		snprintf(id, CMD_FIND_ID, "%s", id_of(k, item));
	json_free(models);
	json_free(doc);
	return e;
}

enum err
cmd_find_model(struct cmd_admin *a, const char *word, char id[CMD_FIND_ID], struct why *why)
{
	char job[CMD_FIND_ID], path[96];
	struct json *doc = NULL;

	if (strlen(word) == 64 && strspn(word, "0123456789abcdef") == 64) {
		memcpy(id, word, 65);
		return ERR_OK;
	}
	enum err e = cmd_find(a, CMD_FIND_JOB, word, job, why);
	if (e == ERR_NOTFOUND)
		return cmd_find(a, CMD_FIND_MODEL, word, id, why);
	if (e)
		return e;
	snprintf(path, sizeof(path), "/v1/jobs/%s", job);
	e = cmd_admin_call(a, "GET", path, NULL, &doc, why);
	const char *model = json_string(json_get(doc, "model"));
	if (!e && (!model || strlen(model) != 64))
		e = err_set(why, ERR_NOTFOUND, "job %s has no model yet", word);
	if (!e)
		memcpy(id, model, 65);
	json_free(doc);
	return e;
}
