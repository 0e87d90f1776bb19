#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "hex.h"
#include "models_inside.h"
#include "stop.h"

enum kind { KIND_MODEL, KIND_STATE, KIND_DIFFERENCE, KIND_OTHER };

static enum kind
kind_of(const char *name, uint8_t id[32])
{
	size_t len = strlen(name);

	if (len < 64 || !hex_decode(id, 32, name, 64))
		return KIND_OTHER;
	if (len == 64)
		return KIND_MODEL;
	if (strcmp(name + 64, MODELS_STATE) == 0)
		return KIND_STATE;
	return strcmp(name + 64, MODELS_DIFFERENCE) == 0 ? KIND_DIFFERENCE : KIND_OTHER;
}

struct recovery {
	struct models *m;
	models_judge *judge;
	void *ctx;
	const char *aside;
	bool act; /* the second pass */
	uint64_t lost; /* found in the first */
};

static enum err
recover_file(struct recovery *r, const char *name, struct why *why)
{
	char path[PATH_MAX];
	uint8_t id[32];

	enum kind kind = kind_of(name, id);
	if (kind == KIND_OTHER)
		return ERR_OK;
	enum models_fate fate = r->judge(r->ctx, id, kind == KIND_STATE);
	/* It can be made again from the models. */
	if (kind == KIND_DIFFERENCE && fate != MODELS_STAYS)
		fate = MODELS_GOES;
	if (!r->act)
		r->lost += fate == MODELS_LOST;
	if (!r->act || fate == MODELS_STAYS)
		return ERR_OK;
	snprintf(path, sizeof(path), "%s/%s", r->m->dir, name);
	if (fate == MODELS_LOST || (fate == MODELS_LEFTOVER && r->lost > 0))
		return file_set_aside(path, r->aside, why);
	return unlink(path) == 0 ? ERR_OK : err_errno(why, "remove %s", path);
}

static enum err
recover_pass(struct recovery *r, struct why *why)
{
	DIR *d = opendir(r->m->dir);
	struct dirent *ent;
	enum err e = ERR_OK;

	if (!d)
		return err_errno(why, "open %s", r->m->dir);
	while (!e && (ent = readdir(d))) {
		e = recover_file(r, ent->d_name, why);
		if (!e && stop_asked(r->m->stop))
			e = err_set(why, ERR_CLOSED, "the coordinator stops");
	}
	closedir(d);
	return e;
}

enum err
models_recover(struct models *m, models_judge *judge, void *ctx, const char *aside, uint64_t *lost,
    struct why *why)
{
	struct recovery r = {.m = m, .judge = judge, .ctx = ctx, .aside = aside, .lost = *lost};

	enum err e = recover_pass(&r, why);
	r.act = true;
	if (!e)
		e = recover_pass(&r, why);
	*lost = r.lost;
	return e;
}

enum err
models_meta(struct models *m, const uint8_t id[32], struct modelfile_meta *out, struct why *why)
{
	struct tensor_table table = {0};
	struct file_map file = {0};
	char path[PATH_MAX];
	uint64_t data_at;

	*out = (struct modelfile_meta){.round = 0};
	models_path(m, id, "", path);
	enum err e = file_map(&file, path, UINT64_MAX, false, why);
	if (e)
		return e == ERR_INVALID ? ERR_CORRUPT : e;
	if (file.len < MODELFILE_PREFIX)
		e = err_set(why, ERR_CORRUPT, "%s is too short", path);
	if (!e)
		e = modelfile_data_at(file.data, file.len, &data_at, why);
	if (!e)
		e = modelfile_parse(&table, out, file.data, data_at, file.len, why);
	tensor_table_deinit(&table);
	file_unmap(&file);
	return e && e != ERR_NOMEM ? ERR_CORRUPT : e;
}
