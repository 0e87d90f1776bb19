#include "board.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "grid.h"
#include "states.h"
#include "tfevents.h"

#define ID_SHOWN 8
#define PENDING_MAX (4u << 20) /* bytes that wait for a write */

static enum err
make_directory(struct cmd_board *b, const char *directory, struct why *why)
{
	const char *name = json_string(json_get(b->job, "name"));
	char run[GRID_NAME_MAX + ID_SHOWN + 1];

	snprintf(run, sizeof(run), "%.*s-%.*s", GRID_NAME_MAX - 1, name ? name : "", ID_SHOWN,
	    json_string(json_get(b->job, "job")));
	grid_clean(run);
	int n = snprintf(b->path, sizeof(b->path), "%s/%s", directory, run);
	if (n < 0 || (size_t)n >= sizeof(b->path) - 64)
		return err_set(why, ERR_LIMIT, "the directory's name is too long");
	return file_mkdirs(b->path, 0755, why);
}

/* The name says when the job was made, so that it is the same whenever the export begins. */
static enum err
open_file(struct cmd_board *b, char path[4096 + 64], struct why *why)
{
	double made = 0;

	(void)json_double(json_get(b->job, "created_at"), &made);
	snprintf(path, 4096 + 64, "%s/events.out.tfevents.%.0f.rivulet", b->path, made);
	b->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (b->fd < 0)
		return err_errno(why, "open %s", path);
	if (flock(b->fd, LOCK_EX | LOCK_NB) != 0)
		return err_set(why, ERR_EXISTS, "another program writes to %s", path);
	return ERR_OK;
}

static enum err
begin_file(struct cmd_board *b, struct why *why)
{
	struct buf text;
	double made = 0;

	(void)json_double(json_get(b->job, "created_at"), &made);
	buf_init(&text, TFEVENTS_RECORD_MAX);
	enum err e = tfevents_begin(&text, made);
	if (!e)
		e = file_pwrite(b->fd, text.data, text.len, 0);
	b->size = text.len;
	buf_deinit(&text);
	return e ? err_set(why, e, "write to %s: %s", b->path, err_name(e)) : ERR_OK;
}

/* What an earlier export left: whole records stay, one that was cut off goes. */
static enum err
resume_file(struct cmd_board *b, const char *path, struct why *why)
{
	struct tfevents_past past;
	struct file_map map;
	struct why local;
	enum err e = file_map(&map, path, TFEVENTS_FILE_MAX, true, why);

	if (e)
		return e;
	e = tfevents_read(&past, map.data, map.len, &local);
	file_unmap(&map);
	if (e)
		return err_set(why, e, "%s: %s", path, local.text);
	if (ftruncate(b->fd, (off_t)past.bytes) != 0)
		return err_errno(why, "truncate %s", path);
	b->size = past.bytes;
	b->next = past.steps ? past.last + 1 : 1;
	b->rounds = past.records > 0 ? past.records - 1 : 0;
	return past.records > 0 ? ERR_OK : begin_file(b, why);
}

enum err
cmd_board_open(struct cmd_board *b, struct cmd_admin *a, const char *word, const char *directory,
    struct why *why)
{
	char path[sizeof(b->path) + 64];
	struct stat st;

	*b = (struct cmd_board){.fd = -1, .next = 1};
	enum err e = cmd_rounds_job(a, word, &b->job, why);
	if (!e)
		e = make_directory(b, directory, why);
	if (!e)
		e = open_file(b, path, why);
	if (!e && fstat(b->fd, &st) != 0)
		e = err_errno(why, "stat %s", path);
	if (!e)
		e = st.st_size > 0 ? resume_file(b, path, why) : begin_file(b, why);
	if (e)
		cmd_board_close(b);
	return e;
}

void
cmd_board_close(struct cmd_board *b)
{
	if (b->fd >= 0)
		close(b->fd);
	json_free(b->job);
	b->fd = -1;
	b->job = NULL;
}

struct step {
	struct cmd_board *board;
	struct tfevents record;
	struct buf pending;
	uint64_t next, rounds; /* when what is pending is written */
};

static void
put_scalar(void *context, const char *tag, double value)
{
	struct step *s = context;

	tfevents_scalar(&s->record, tag, value);
}

static enum err
flush(struct step *s, struct why *why)
{
	struct cmd_board *b = s->board;
	enum err e = file_pwrite(b->fd, buf_str(&s->pending), s->pending.len, b->size);

	if (e)
		return err_set(why, e, "write to %s: %s", b->path, err_name(e));
	b->size += s->pending.len;
	b->next = s->next;
	b->rounds = s->rounds;
	buf_reset(&s->pending);
	return ERR_OK;
}

static enum err
put_round(void *context, const struct json *round, struct why *why)
{
	struct step *s = context;
	uint64_t number;
	size_t before = s->pending.len;

	if (!json_u64(json_get(round, "round"), &number))
		return err_set(why, ERR_INVALID, "what came is no round");
	scalars_each(round, put_scalar, s);
	enum err e = tfevents_end(&s->pending, &s->record, scalars_end(round), number);
	if (e)
		return err_set(
		    why, e, "round %.0f cannot be written: %s", (double)number, err_name(e));
	s->next = number + 1;
	s->rounds += s->pending.len > before;
	return s->pending.len > PENDING_MAX / 2 ? flush(s, why) : ERR_OK;
}

/* The state before the rounds: a job seen as over has all its rounds committed. */
enum err
cmd_board_step(struct cmd_board *b, struct cmd_admin *a, struct why *why)
{
	struct step s = {.board = b, .next = b->next, .rounds = b->rounds};
	struct json *job = NULL;
	enum err e = cmd_rounds_job(a, json_string(json_get(b->job, "job")), &job, why);

	if (e)
		return e;
	tfevents_init(&s.record);
	buf_init(&s.pending, PENDING_MAX);
	e = cmd_rounds_each(a, b->job, b->next, put_round, &s, why);
	struct why local;
	enum err written = flush(&s, &local);
	if (!e && written)
		e = err_set(why, written, "%s", local.text);
	b->over = !e && states_job_over(states_job_find(json_string(json_get(job, "state"))));
	tfevents_deinit(&s.record);
	buf_deinit(&s.pending);
	json_free(job);
	return e;
}
