#include "decoder.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "confine.h"
#include "file.h"
#include "num.h"
#include "sandbox.h"

#define FILE_MAX ((uint64_t)256 << 20) /* bytes of a picture's file */

/* What goes through the pipe before the pixels, of which there are none after a failure. */
struct answer {
	enum err e;
	uint32_t size[3]; /* channels, height, width */
	struct why why;
};

/* --- the child */

static bool
put(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = write(fd, at, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

static enum err
decode(const struct decoder_options *o, const char *path, struct answer *a, uint8_t **pixels)
{
	struct file_map file = {0};
	struct image image;
	size_t bytes;
	enum err e = file_map(&file, path, FILE_MAX, false, &a->why);

	if (e)
		return e;
	e = image_decode(&image, file.data, file.len, &o->wanted, &a->why);
	file_unmap(&file);
	if (e)
		return e;
	a->size[0] = image.channels;
	a->size[1] = o->height ? o->height : image.height;
	a->size[2] = o->width ? o->width : image.width;
	*pixels =
	    num_mul((size_t)a->size[1] * a->size[2], image.channels, &bytes) ? malloc(bytes) : NULL;
	if (*pixels)
		image_fit(&image, a->size[2], a->size[1], *pixels);
	else
		e = err_set(&a->why, ERR_NOMEM, "no memory for the scaled picture");
	image_deinit(&image);
	return e;
}

/* No sanitizer lives within a limit of addresses. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMIT_ADDRESSES 0
#else
#define LIMIT_ADDRESSES 1
#endif

static void
limit(unsigned what, uint64_t most)
{
	const struct rlimit l = {(rlim_t)most, (rlim_t)most};

	(void)!setrlimit(what, &l);
}

/* Addresses in use: libraries reserve more the more processors there are. */
static uint64_t
addresses(void)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%llu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void
give_up_rights(const struct decoder_options *o)
{
	struct confine c;
	const struct sandbox_options calls = {.truncate_decided = true};

	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, 0);
	if (LIMIT_ADDRESSES)
		limit(RLIMIT_AS, addresses() + o->memory);
	if (confine_init(&c, CONFINE_FILES, NULL, NULL) == ERR_OK) {
		(void)!confine_allow(&c, o->path, CONFINE_READ, NULL);
		for (size_t i = 0; i < o->folder->link_count; i++)
			(void)!confine_allow(&c, o->folder->links[i], CONFINE_READ, NULL);
		(void)!confine_enter(&c, NULL);
		confine_deinit(&c);
	}
	(void)!sandbox_enter(&calls, NULL);
}

static void
child(const struct decoder_options *o, int fd)
{
	const struct class_folder *f = o->folder;

	/* A reader that is gone is the end, by EPIPE. */
	signal(SIGPIPE, SIG_IGN);
	give_up_rights(o);
	for (size_t i = o->first; i < f->count; i += o->step) {
		struct answer a = {.e = ERR_OK};
		uint8_t *pixels = NULL;
		a.e = decode(o, f->files[i].path, &a, &pixels);
		bool ok = put(fd, &a, sizeof(a)) &&
		    (a.e || put(fd, pixels, (size_t)a.size[0] * a.size[1] * (size_t)a.size[2]));
		free(pixels);
		if (!ok || a.e)
			break;
	}
	_exit(0);
}

/* --- the parent */

enum err
decoder_start(struct decoder *d, const struct decoder_options *options, struct why *why)
{
	int fds[2];

	*d = (struct decoder){.fd = -1, .seconds = options->seconds};
	if (pipe(fds) != 0)
		return err_errno(why, "make a pipe");
	d->pid = fork();
	if (d->pid < 0) {
		d->pid = 0;
		close(fds[0]);
		close(fds[1]);
		return err_errno(why, "start a decoder");
	}
	if (d->pid == 0) {
		close(fds[0]);
		child(options, fds[1]);
	}
	close(fds[1]);
	d->fd = fds[0];
	return ERR_OK;
}

void
decoder_stop(struct decoder *d)
{
	if (d->pid == 0)
		return;
	kill(d->pid, SIGKILL);
	close(d->fd);
	while (waitpid(d->pid, NULL, 0) < 0 && errno == EINTR)
		;
	*d = (struct decoder){.fd = -1};
}

static double
seconds_now(void)
{
	return clock_seconds();
}

static enum err
take(struct decoder *d, void *out, size_t len, double until)
{
	char *at = out;

	while (len > 0) {
		struct pollfd p = {.fd = d->fd, .events = POLLIN};
		double left = until - seconds_now();
		int ready = left > 0 ? poll(&p, 1, (int)(left * 1000) + 1) : 0;
		if (ready == 0)
			return ERR_TIMEOUT;
		ssize_t n = ready > 0 ? read(d->fd, at, len) : -1;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return ERR_CLOSED;
		at += n;
		len -= (size_t)n;
	}
	return ERR_OK;
}

/* Why nothing came. */
static enum err
ended(struct decoder *d, enum err e, const char *path, struct why *why)
{
	int status = 0;

	if (e == ERR_TIMEOUT)
		return err_set(
		    why, e, "%.160s: decoding took longer than %.0f s", path, d->seconds);
	if (waitpid(d->pid, &status, 0) == d->pid) {
		close(d->fd);
		d->pid = 0;
	}
	return err_set(why, ERR_INVALID, "%.160s: the decoder ended by signal %d", path,
	    WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

enum err
decoder_next(struct decoder *d, const char *path, uint32_t size[3], uint8_t **pixels, size_t *room,
    struct why *why)
{
	double until = seconds_now() + d->seconds;
	struct answer a;
	enum err e = take(d, &a, sizeof(a), until);

	if (e)
		return ended(d, e, path, why);
	if (a.e) {
		a.why.text[sizeof(a.why.text) - 1] = '\0';
		/* A reason about the file itself names it. */
		return strstr(a.why.text, path)
		    ? err_set(why, a.e, "%s", a.why.text)
		    : err_set(why, a.e, "%.120s: %.120s", path, a.why.text);
	}
	size_t bytes = (size_t)a.size[0] * a.size[1] * a.size[2];
	if (bytes > *room) {
		void *more = realloc(*pixels, bytes);
		if (!more)
			return err_set(why, ERR_NOMEM, "no memory for a picture");
		*pixels = more;
		*room = bytes;
	}
	memcpy(size, a.size, sizeof(a.size));
	e = take(d, *pixels, bytes, until);
	return e ? ended(d, e, path, why) : ERR_OK;
}
