#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api.h"
#include "audit.h"
#include "clock.h"
#include "config.h"
#include "drive.h"
#include "engine.h"
#include "file.h"
#include "hex.h"
#include "job_list.h"
#include "job_needs.h"
#include "log.h"
#include "modelfile.h"
#include "models.h"
#include "num.h"
#include "role.h"
#include "services.h"
#include "shared.h"
#include "store.h"
#include "tasks.h"
#include "views.h"

/* --- GET, with Range (one range, RFC 9110) and ETag */

/* Parses "bytes=a-b", "bytes=a-" or "bytes=-n" against a file; false: not satisfiable. Any other form is ignored. */
static bool
apply_range(const char *range, uint64_t bytes, uint64_t *from, uint64_t *len)
{
	char first[24] = "", last[24] = "";
	uint64_t a = 0, b = bytes - 1;

	*from = 0;
	*len = bytes;
	if (strncmp(range, "bytes=", 6) != 0 || strchr(range, ','))
		return true;
	const char *dash = strchr(range, '-');
	if (!dash || (size_t)(dash - range - 6) >= sizeof(first) ||
	    strlen(dash + 1) >= sizeof(last))
		return true;
	memcpy(first, range + 6, (size_t)(dash - range - 6));
	strcpy(last, dash + 1);
	if ((first[0] && !num_u64(first, UINT64_MAX, &a)) ||
	    (last[0] && !num_u64(last, UINT64_MAX, &b)) || (!first[0] && !last[0]))
		return true;
	if (!first[0]) {
		a = b < bytes ? bytes - b : 0;
		b = bytes - 1;
	}
	if (a >= bytes || a > b)
		return false;
	if (b >= bytes)
		b = bytes - 1;
	*from = a;
	*len = b - a + 1;
	return true;
}

/* Answers with the map's bytes, or a range of them; takes over the reference. */
static void
send_map(struct exchange *x, struct models_map *map, const char *name)
{
	uint64_t from, len;
	char etag[144];

	snprintf(etag, sizeof(etag), "\"%s\"", name);
	if (strstr(x->request.if_none_match, etag)) {
		exchange_status(x, 304);
		exchange_header(x, "ETag", "%s", etag);
		models_map_release(map);
		return;
	}
	if (x->request.range[0] && !apply_range(x->request.range, map->bytes, &from, &len)) {
		exchange_problem(x, PROBLEM_BAD_RANGE, "the file has %llu bytes",
		    (unsigned long long)map->bytes);
		exchange_header(x, "Content-Range", "bytes */%llu", (unsigned long long)map->bytes);
		models_map_release(map);
		return;
	}
	if (!x->request.range[0])
		apply_range("", map->bytes, &from, &len);
	bool partial = len < map->bytes;
	exchange_status(x, partial ? 206 : 200);
	exchange_header(x, "ETag", "%s", etag);
	exchange_header(x, "Accept-Ranges", "bytes");
	exchange_header(x, "Cache-Control", "public, max-age=31536000, immutable");
	if (partial)
		exchange_header(x, "Content-Range", "bytes %llu-%llu/%llu",
		    (unsigned long long)from, (unsigned long long)(from + len - 1),
		    (unsigned long long)map->bytes);
	x->response.type = "application/octet-stream";
	x->response.file = map;
	x->response.file_at = from;
	x->response.file_len = len;
	if (x->request.method == VERB_HEAD)
		return;
	models_note_sent(x->services->models, map, len);
	if (x->who.roles & ROLE_DEVICE)
		tasks_count_down(x->services->engine, map->id, len);
}

/* The answer for a file that is not there. */
struct missing {
	enum problem_type problem;
	const char *detail;
};

static void
answer(struct exchange *x, enum err e, struct models_map *map, const char *name,
    const struct missing *missing, const struct why *why)
{
	if (e == ERR_NOTFOUND)
		exchange_problem(x, missing->problem, "%s", missing->detail);
	else if (e)
		exchange_failed(x, e, why);
	else
		send_map(x, map, name);
}

/* May the client read this model? A device may read the base of an open round, and any model of a job that selects the device. */
static bool
may_read(struct exchange *x, const uint8_t id[32])
{
	struct engine *g = x->services->engine;
	struct store_model row;
	uint64_t read = 0;

	bool may = engine_may_read(g, x->who.device, id, &read) ||
	    (store_model_find(x->services->store, id, &row) == ERR_OK &&
		engine_may_work(g, x->who.device, row.job, &read));
	exchange_looked(x, read / VIEWS_BYTES_PER_ROW);
	return may;
}

/* Tells the engine that a file is missing or damaged: jobs that start from it wait until it is back. */
static void
tell(struct exchange *x, enum engine_lack_kind kind, const uint8_t id[32], enum err e,
    const struct why *why)
{
	struct engine_lack lack = {.kind = kind};

	memcpy(lack.id, id, 32);
	rounds_lacks(x->services->engine, &lack, e, why);
}

void
api_model_get(struct exchange *x)
{
	struct models_map *map = NULL;
	struct why why = {""};
	uint8_t id[32];
	bool reader = x->who.roles & ROLE_READERS;

	bool known = hex_decode(id, sizeof(id), x->param[0], strlen(x->param[0])) &&
	    (reader || may_read(x, id));
	enum err e = known ? models_get(x->services->models, id, &map, &why) : ERR_NOTFOUND;
	if (known && e)
		tell(x, LACKS_MODEL, id, e, &why);
	/* A file that a job's device may have, and that is gone, is our fault: no final answer. */
	if (e == ERR_NOTFOUND && known && !reader)
		e = ERR_CORRUPT;
	answer(x, e, map, x->param[0],
	    &(struct missing){PROBLEM_NOT_FOUND,
		reader ? "no such model: none was here, or it is no longer kept ([retention], the "
			 "job's \"keep\")"
		       : "no such model, or not for this device"},
	    &why);
}

/* Answers with a difference. If it is missing or damaged, the device only has to fetch the whole model. */
void
api_model_difference(struct exchange *x)
{
	struct models_map *map = NULL;
	struct why why = {""};
	uint8_t to[32], from[32];
	char name[136];

	bool known = hex_decode(to, sizeof(to), x->param[0], strlen(x->param[0])) &&
	    hex_decode(from, sizeof(from), x->param[1], strlen(x->param[1])) &&
	    ((x->who.roles & ROLE_READERS) || may_read(x, to));
	enum err e =
	    known ? models_difference_get(x->services->models, to, from, &map, &why) : ERR_NOTFOUND;
	if (e == ERR_CORRUPT)
		log_event(LOG_LEVEL_WARN, "difference.damaged", LOG_S("model", x->param[0]),
		    LOG_S("why", why.text));
	snprintf(name, sizeof(name), "%.64s-%.64s", x->param[0], x->param[1]);
	answer(x, e == ERR_CORRUPT ? ERR_NOTFOUND : e, map, name,
	    &(struct missing){PROBLEM_NO_DIFFERENCE,
		"nothing shorter than the model leads from one to the other: fetch it whole"},
	    &why);
}

/* Answers with an optimizer state. Devices need the control variate at its end, and check the hash of the whole state. */
void
api_state_get(struct exchange *x)
{
	struct models_map *map = NULL;
	struct why why = {""};
	uint8_t id[32];

	bool known = hex_decode(id, sizeof(id), x->param[0], strlen(x->param[0])) &&
	    ((x->who.roles & ROLE_READERS) ||
		engine_variate_may_read(x->services->engine, x->who.device, id));
	enum err e = known ? models_state_map(x->services->models, id, &map, &why) : ERR_NOTFOUND;
	if (known && e)
		tell(x, LACKS_STATE, id, e, &why);
	answer(x, e, map, x->param[0],
	    &(struct missing){PROBLEM_NOT_FOUND, "no such state, or not for this device"}, &why);
}

/* --- PUT: an administrator uploads a model for jobs that start from it */

struct upload {
	const struct services *services;
	uint8_t id[32], owner[32];
	int fd;
	char path[1200];
	uint64_t at;
	struct hash *hash;
	/* Held from before the first byte until the row is written. */
	struct engine_reservation reservation;
	struct engine_spending spending;
	bool charged; /* the owner was charged, and the charge not given back */
};

#define UPLOAD_ENTRIES \
	3 /* its row, the entry of its deletion, and the row that it may be in then */

/* Writes the row of an uploaded model, which belongs to no job, so that the model stays. */
static enum err
model_row(struct store_db *db, void *arg, struct why *why)
{
	const struct upload *u = arg;
	struct store_model m = {.bytes = u->at, .created_at = clock_wall()};

	memcpy(m.id, u->id, 32);
	memcpy(m.owner, u->owner, 32);
	enum err e = models_still(u->services->models, u->id, why);
	if (!e)
		e = store_model_put(db, &m);
	if (!e)
		e = store_model_pin(db, u->id, u->owner);
	return e ? e
		 : engine_owner_written(u->services->spent, db, u->charged ? &u->spending : NULL);
}

/* Writes the model's row, and ends the reservation: the bytes count by the row from then on. */
static enum err
write_row(struct upload *u, struct why *why)
{
	struct engine *g = u->services->engine;

	engine_owner_settle(g, &u->reservation);
	enum err e = store_write(u->services->store, model_row, u, why);
	engine_owner_release(g, &u->reservation);
	if (e && u->charged)
		engine_owner_unspend(g, &u->spending);
	u->charged = false;
	return e;
}

/* Reserves bytes and charges the owner before the first byte of an upload, but not for administrators. False: the problem response is
 * set. */
static bool
may_own(struct exchange *x, struct upload *u)
{
	struct engine *g = x->services->engine;
	struct why why = {""};

	if (x->who.roles & ROLE_ADMIN)
		return true;
	u->spending.entries = UPLOAD_ENTRIES;
	memcpy(u->spending.owner, u->owner, sizeof(u->spending.owner));
	enum err e = engine_owner_models(g, u->owner, x->request.length, &u->reservation, &why);
	if (!e)
		e = engine_owner_spend(g, &u->spending, &why);
	u->charged = !e;
	x->retry_after_s = u->spending.wait_s;
	if (e == ERR_AGAIN)
		exchange_problem(x, PROBLEM_TOO_MANY_REQUESTS, "%s", why.text);
	else if (e == ERR_DENIED)
		exchange_problem(x, PROBLEM_OWNER_LIMIT, "%s", why.text);
	else if (e)
		exchange_failed(x, e, &why);
	return !e;
}

static bool
is_short_enough(struct exchange *x)
{
	const struct config *c = shared_take(x->services->config);
	uint64_t most = c->model_bytes;

	shared_give(x->services->config, c);
	if (x->request.length > most)
		exchange_problem(x, PROBLEM_TOO_LARGE, "models have at most %llu bytes here",
		    (unsigned long long)most);
	return x->request.length <= most;
}

static bool
is_here(struct upload *u)
{
	struct models_map *map = NULL;

	if (models_get(u->services->models, u->id, &map, NULL))
		return false;
	u->at = map->bytes;
	models_map_release(map);
	return true;
}

/* Would the model's row stay as it is? Then a repeated upload writes nothing and costs nothing. */
static bool
is_settled(const struct upload *u)
{
	static const uint8_t none[32];
	struct store_model row;

	return store_model_find(u->services->store, u->id, &row) == ERR_OK &&
	    memcmp(row.job, none, sizeof(row.job)) == 0 &&
	    (memcmp(row.owner, none, sizeof(none)) != 0 ||
		memcmp(u->owner, none, sizeof(none)) == 0);
}

#define SCANNED_PER_ROW (128u << 10) /* bytes of a model, which cost what a row does */

/* A warning if jobs that train or average this model would be refused, in the words of a submission's warnings; NULL: none. */
static char *
warning_of(const struct models_map *map)
{
	const struct tensor *first = NULL;
	char text[200];
	size_t count = 0;

	for (size_t i = 0; i < map->table.count; i++) {
		const struct tensor *t = &map->table.items[i];
		if (t->dtype != TENSOR_F32 || tensor_is_finite(t, map->data + map->data_at))
			continue;
		first = first ? first : t;
		count++;
	}
	if (!first)
		return NULL;
	snprintf(text, sizeof(text),
	    "%zu tensor%s NaN or infinity, first \"%.80s\": a job that trains or averages it is "
	    "refused",
	    count, count == 1 ? " holds" : "s hold", first->name);
	return strdup(text);
}

/* Answers an upload: 201, or 200 if the model was there already. */
static void
answer_upload(struct exchange *x, const struct upload *u, unsigned status)
{
	struct models_map *map = NULL;
	char *warning = models_get(u->services->models, u->id, &map, NULL) ? NULL : warning_of(map);

	/* Who sends it pays by sending. */
	if (map && status == 200)
		exchange_looked(x, map->bytes / SCANNED_PER_ROW);
	models_map_release(map);
	if (!warning) {
		exchange_status(x, status);
		return;
	}
	struct json *v = json_object(), *list = json_array();
	json_push(list, json_new_string(warning));
	json_add(v, "warnings", list);
	exchange_json(x, status, v);
	free(warning);
}

static struct upload *
upload_new(const struct exchange *x)
{
	struct upload *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->fd = -1;
	u->services = x->services;
	memcpy(u->owner, x->who.owner, sizeof(u->owner));
	u->hash = hash_new();
	return u;
}

static void
take_body(struct exchange *x, struct upload *u)
{
	models_temp_path(u->services->models, u->path, sizeof(u->path));
	u->fd = open(u->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (u->fd < 0) {
		exchange_failed(x, err_errno(NULL, "create"), NULL);
		return;
	}
	hash_start(u->hash);
	x->wanted = true;
}

static void
model_begin(struct exchange *x)
{
	struct upload *u = x->state = upload_new(x);

	if (!u || !u->hash) {
		exchange_failed(x, ERR_NOMEM, NULL);
		return;
	}
	if (!hex_decode(u->id, sizeof(u->id), x->param[0], strlen(x->param[0]))) {
		exchange_problem(x, PROBLEM_BAD_REQUEST, "a model id is 64 lower-case hex digits");
		return;
	}
	if (!is_short_enough(x))
		return;
	bool here = is_here(u), settled = here && is_settled(u);
	if (!settled && !may_own(x, u))
		return;
	enum err e = here && !settled ? write_row(u, NULL) : ERR_OK;
	if (e)
		exchange_failed(x, e, NULL);
	else if (here)
		answer_upload(x, u, 200);
	else
		take_body(x, u);
}

static enum err
model_data(struct exchange *x, const void *p, size_t len)
{
	struct upload *u = x->state;
	enum err e = file_pwrite(u->fd, p, len, u->at);

	if (e) {
		exchange_failed(x, e, NULL);
		return e;
	}
	hash_update(u->hash, p, len);
	u->at += len;
	return ERR_OK;
}

/* Reads the header back and checks that it is a model we can work with. */
static enum err
check_file(const struct upload *u, struct why *why)
{
	uint8_t prefix[MODELFILE_PREFIX];
	struct tensor_table table = {0};
	uint64_t data_at;

	if (u->at < sizeof(prefix))
		return err_set(why, ERR_INVALID, "the file is too short");
	enum err e = file_pread(u->fd, prefix, sizeof(prefix), 0);
	if (!e)
		e = modelfile_data_at(prefix, u->at, &data_at, why);
	if (e)
		return e;
	uint8_t *head = malloc(data_at);
	e = head ? file_pread(u->fd, head, data_at, 0) : ERR_NOMEM;
	if (!e)
		e = modelfile_parse(&table, NULL, head, data_at, u->at, why);
	tensor_table_deinit(&table);
	free(head);
	return e;
}

static void
model_finish(struct exchange *x)
{
	struct upload *u = x->state;
	struct why why = {""};
	uint8_t digest[HASH_LEN];

	hash_finish(u->hash, digest);
	enum err e = check_file(u, &why);
	if (!hash_equal(digest, u->id, HASH_LEN)) {
		exchange_problem(
		    x, PROBLEM_WRONG_HASH, "the body's SHA-256 is not the id in the path");
	} else if (e == ERR_INVALID || e == ERR_LIMIT || e == ERR_UNSUPPORTED || e == ERR_EXISTS) {
		exchange_problem(x, PROBLEM_BAD_MODEL, "%s", why.text);
	} else {
		if (!e)
			e = models_adopt(x->services->models, u->fd, u->path, u->id, &why);
		if (!e)
			u->path[0] = '\0';
		if (!e)
			e = write_row(u, &why);
		if (e && !u->path[0])
			jobs_drop_leftover(x->services->store, x->services->models, u->id);
		if (e)
			exchange_failed(x, e, &why);
		else
			answer_upload(x, u, 201);
	}
	exchange_done(x);
}

static void
model_drop(struct exchange *x)
{
	struct upload *u = x->state;

	if (!u)
		return;
	if (u->fd >= 0) {
		close(u->fd);
		if (u->path[0])
			unlink(u->path);
	}
	engine_owner_release(u->services->engine, &u->reservation);
	if (u->charged)
		engine_owner_unspend(u->services->engine, &u->spending);
	hash_free(u->hash);
	free(u);
	x->state = NULL;
}

const struct stream_ops api_model_put = {model_begin, model_data, model_finish, model_drop};

/* --- DELETE: of an uploaded one; what jobs have made goes with them */

struct removal {
	const struct exchange *x;
	uint8_t id[32];
	char by[EXCHANGE_ACTOR_MAX];
};

static enum err
audit_removal(struct store_db *db, const struct removal *r, struct why *why)
{
	struct json *facts = json_object(), *detail = json_object();

	json_add_string(facts, "model", r->x->param[0]);
	json_add_string(detail, "by", r->by);
	return audit_append(db, r->x->services,
	    &(struct audit_event){.event = RECORD_MODEL_DELETED, .facts = facts, .detail = detail},
	    why);
}

static enum err
remove_row(struct store_db *db, void *arg, struct why *why)
{
	static const uint8_t none[16];
	const struct removal *r = arg;
	const struct identity *who = &r->x->who;
	struct store_model row;

	enum err e = store_model_get(db, r->id, &row);
	if (e)
		return e;
	if (!(who->roles & ROLE_ADMIN) && memcmp(row.owner, who->owner, sizeof(row.owner)) != 0)
		return err_set(why, ERR_DENIED, "the model was uploaded by somebody else");
	if (memcmp(row.job, none, sizeof(none)) != 0)
		return err_set(why, ERR_STATE, "a job has made it: it goes with the job");
	if (engine_uses_model(r->x->services->engine, r->id))
		return err_set(why, ERR_STATE, "a job needs it: delete that first");
	e = store_model_delete(db, r->id);
	return e ? e : audit_removal(db, r, why);
}

/* Removes a model's file on the store thread, unless a new upload of it has written its row meanwhile. */
static enum err
remove_file(struct store_db *db, void *arg, struct why *why)
{
	const struct removal *r = arg;
	struct store_model row;

	(void)why;
	enum err e = store_model_get(db, r->id, &row);
	return e == ERR_NOTFOUND ? models_delete(r->x->services->models, r->id) : e;
}

void
api_model_delete(struct exchange *x)
{
	struct removal r = {.x = x};
	struct why why = {""};

	exchange_actor(x, r.by);
	enum err e = hex_decode(r.id, sizeof(r.id), x->param[0], strlen(x->param[0]))
	    ? store_write_reserved(x->services->store, remove_row, NULL, &r, &why)
	    : ERR_NOTFOUND;
	if (!e)
		e = store_write(x->services->store, remove_file, &r, &why);
	if (e == ERR_NOTFOUND)
		exchange_problem(x, PROBLEM_NOT_FOUND, "no such model");
	else if (e == ERR_DENIED)
		exchange_problem(x, PROBLEM_FORBIDDEN, "%s", why.text);
	else if (e == ERR_STATE)
		exchange_problem(x, PROBLEM_WRONG_STATE, "%s", why.text);
	else if (e)
		exchange_failed(x, e, &why);
	else
		exchange_status(x, 204);
}
