#include "ini.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "file.h"
#include "ini_unknown.h"
#include "text_file.h"

#define FILE_BYTES_MAX (1u << 20)
#define HEAD_MAX 128 /* bytes between the brackets, and a zero */

/* A section that occurred. */
struct entry {
	const struct ini_section *section;
	char head[HEAD_MAX]; /* "limits", "data mnist" */
	void *fields;
	const char *file; /* where its head stood first */
	int line;
	const char *last; /* and the last file in which it stood */
	uint64_t given, here; /* keys, a bit each: in all files, in the present one */
};

struct reader {
	const struct ini *ini;
	struct entry *entries;
	size_t count;
	struct entry *now; /* NULL before the first head of a file, and after a wrong one */
	bool lost; /* behind a wrong head: its keys belong to nothing */
	const char *file;
	int line;
	enum err e; /* the first error stays */
	struct why *why;
};

/* --- messages */

/* A long path must not push the reason out of the message. */
static const char *
short_name(const char *file)
{
	const char *slash = strrchr(file, '/');

	return strlen(file) > 100 && slash ? slash + 1 : file;
}

static void
place(const struct reader *r, const char *head, const char *key, char out[INI_PLACE_MAX])
{
	const char *name = key ? key : "";
	int n = snprintf(out, INI_PLACE_MAX, "%.120s:%d: ", short_name(r->file), r->line);
	size_t room = INI_PLACE_MAX - (size_t)n;

	if (!head)
		snprintf(out + n, room, "%.40s%s", name, key ? ": " : "");
	else if (!r->ini->dotted)
		snprintf(out + n, room, "[%.70s]%s%.40s: ", head, key ? " " : "", name);
	else
		snprintf(out + n, room, "%.70s%s%.40s: ", head, key ? "." : "", name);
}

/* Does reading end here? */
static bool
stops(const struct reader *r)
{
	const struct ini_notes *notes = r->ini->notes;

	return r->e && !(r->e == ERR_INVALID && notes && notes->mistake);
}

static void __attribute__((format(printf, 4, 5)))
complain(struct reader *r, const char *head, const char *key, const char *fmt, ...)
{
	const struct ini_notes *notes = r->ini->notes;
	char where[INI_PLACE_MAX], text[192];
	struct why said;
	va_list ap;

	if (stops(r))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	place(r, head, key, where);
	err_set(&said, ERR_INVALID, "%s%s", where, text);
	if (!r->e)
		r->e = err_set(r->why, ERR_INVALID, "%s", said.text);
	if (notes && notes->mistake)
		notes->mistake(notes->context, said.text);
}

static void
note_place(struct reader *r, const void *field, const char *key)
{
	struct ini_notes *n = r->ini->notes;

	if (!n)
		return;
	struct ini_place *more = realloc(n->places, (n->count + 1) * sizeof(*more));
	if (!more) {
		r->e = err_set(r->why, ERR_NOMEM, "no memory to read %s", r->file);
		return;
	}
	n->places = more;
	more[n->count].field = field;
	place(r, r->now->head, key, more[n->count++].text);
}

const char *
ini_notes_place(const struct ini_notes *notes, const void *field, size_t which)
{
	const char *found = "";
	size_t seen = 0;

	for (size_t i = 0; i < notes->count && seen <= which; i++)
		if (notes->places[i].field == field) {
			found = notes->places[i].text;
			seen++;
		}
	return found;
}

void
ini_notes_deinit(struct ini_notes *notes)
{
	free(notes->places);
	notes->places = NULL;
	notes->count = 0;
}

static void
warn(struct reader *r, const char *key, const char *now)
{
	struct ini_warnings *w = r->ini->warnings;
	char where[INI_PLACE_MAX];

	if (w->count == INI_WARNINGS_MAX)
		return;
	place(r, r->now->head, key, where);
	if (now)
		err_set(&w->text[w->count++], ERR_OK, "%sis called %s now", where, now);
	else
		err_set(
		    &w->text[w->count++], ERR_OK, "%sis no longer known and has no effect", where);
}

static void
unknown_key(struct reader *r, const char *name)
{
	char text[INI_UNKNOWN_MAX];

	ini_unknown_key(text, r->ini, r->now->section, name);
	complain(r, r->now->head, name, "%s", text);
}

static void
unknown_section(struct reader *r, const char *head)
{
	char text[INI_UNKNOWN_MAX];

	ini_unknown_section(text, r->ini, head);
	complain(r, head, NULL, "%s", text);
}

/* --- sections and keys */

/* Sets the defaults of one section. */
static void
set_defaults(const struct ini_key *keys, void *fields)
{
	/* The tests hold every default against its own range. */
	for (const struct ini_key *k = keys; k->name; k++)
		if (k->fallback)
			(void)!k->set(k, (char *)fields + k->offset, k->fallback, NULL);
}

static void
add_entry(struct reader *r, const struct ini_section *s, const char *head, const char *name)
{
	struct why why = {""};
	void *fields = s->open ? s->open(r->ini->out, name, &why) : r->ini->out;

	if (!fields) {
		complain(r, head, NULL, "%s", why.text);
		return;
	}
	struct entry *more = realloc(r->entries, (r->count + 1) * sizeof(*more));
	if (!more) {
		r->e = err_set(r->why, ERR_NOMEM, "no memory to read %s", r->file);
		return;
	}
	r->entries = more;
	r->now = &more[r->count++];
	*r->now = (struct entry){
	    .section = s, .fields = fields, .file = r->file, .line = r->line, .last = r->file};
	snprintf(r->now->head, sizeof(r->now->head), "%s%s%s", s->name, *name ? " " : "", name);
	if (s->open)
		set_defaults(s->keys, fields);
}

/* name is what follows the section's own name, or "". */
static void
enter(struct reader *r, const struct ini_section *s, const char *head, const char *name)
{
	size_t n = strlen(s->name);

	for (size_t i = 0; i < r->count; i++) {
		struct entry *e = &r->entries[i];
		if (e->section != s || strcmp(e->head + n + (s->open != NULL), name) != 0)
			continue;
		if (s->once && e->last == r->file)
			complain(r, head, NULL, "given twice");
		e->last = r->file;
		r->now = e;
		return;
	}
	add_entry(r, s, head, name);
}

static void
find_section(struct reader *r, const char *head)
{
	for (const struct ini_section *s = r->ini->sections; s->name; s++) {
		size_t n = strlen(s->name);
		if (!s->open && strcmp(head, s->name) == 0) {
			enter(r, s, head, "");
			return;
		}
		if (s->open && strncmp(head, s->name, n) == 0 && head[n] == ' ') {
			enter(r, s, head, head + n + strspn(head + n, " "));
			return;
		}
	}
	unknown_section(r, head);
}

/* line starts with a bracket. */
static void
read_head(struct reader *r, const char *line, size_t len)
{
	char head[HEAD_MAX];
	const char *close = memchr(line, ']', len);
	size_t head_len = close ? (size_t)(close - line) - 1 : 0;

	r->now = NULL;
	r->lost = true;
	if (!close || head_len >= sizeof(head)) {
		complain(r, NULL, NULL, "not a [section]");
		return;
	}
	for (const char *s = close + 1; s < line + len && *s != ';' && *s != '#'; s++) {
		if (*s != ' ' && *s != '\t') {
			complain(r, NULL, NULL, "something follows the section's bracket");
			return;
		}
	}
	memcpy(head, line + 1, head_len);
	head[head_len] = '\0';
	find_section(r, head);
}

/* The quotes would be a part of it. */
static bool
is_quoted(const char *value)
{
	size_t len = strlen(value);

	return len >= 2 && (*value == '"' || *value == '\'') && value[len - 1] == *value;
}

static void
set_key(struct reader *r, const struct ini_key *k, const char *value)
{
	struct entry *e = r->now;
	uint64_t bit = (uint64_t)1 << (k - e->section->keys);
	void *field = (char *)e->fields + k->offset;
	struct why why = {""};

	if (!k->set || k->now)
		warn(r, k->name, k->now);
	if (!k->set)
		return;
	if ((e->here & bit) && !k->many) {
		complain(r, e->head, k->name, "given twice");
		return;
	}
	if (k->many && !(e->given & bit))
		memset(field, 0, k->size);
	e->given |= bit;
	e->here |= bit;
	if (!k->quotes && is_quoted(value))
		complain(r, e->head, k->name, "%.60s stands in quotes: leave them out", value);
	else if (k->set(k, field, value, &why))
		complain(r, e->head, k->name, "%s", why.text);
	else
		note_place(r, field, k->name);
}

static void
take_pair(struct reader *r, const char *name, const char *value)
{
	if (!r->now) {
		if (!r->lost)
			complain(r, NULL, name, "stands before any [section]");
		return;
	}
	for (const struct ini_key *k = r->now->section->keys; k->name; k++) {
		if (strcmp(k->name, name) == 0) {
			set_key(r, k, value);
			return;
		}
	}
	unknown_key(r, name);
}

/* --- lines and files */

static bool
has_control(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)s[i] < ' ' && s[i] != '\t') || s[i] == 0x7f)
			return true;
	return false;
}

/* The bytes before one of these, or before a comment: a semicolon behind a blank. */
static size_t
span(const char *s, size_t len, const char *ends)
{
	size_t n = 0;
	bool blank = false;

	while (n < len && !strchr(ends, s[n]) && !(blank && s[n] == ';')) {
		blank = s[n] == ' ' || s[n] == '\t';
		n++;
	}
	return n;
}

/* "key = value" or "key: value"; line holds no zero. */
static void
read_pair(struct reader *r, const char *line, size_t len)
{
	char name[INI_LINE_MAX + 1], value[INI_LINE_MAX + 1];
	size_t n = span(line, len, "=:");

	if (n == len || line[n] == ';') {
		complain(r, NULL, NULL, "neither a [section] nor \"key = value\" nor a comment");
		return;
	}
	const char *v = line + n + 1, *end = v + span(v, len - n - 1, "");
	size_t name_len = bytes_trim(&line, line + n), value_len = bytes_trim(&v, end);
	snprintf(name, sizeof(name), "%.*s", (int)name_len, line);
	snprintf(value, sizeof(value), "%.*s", (int)value_len, v);
	take_pair(r, name, value);
}

static void
read_line(struct reader *r, const char *s, const char *end)
{
	size_t len = bytes_trim(&s, end);

	if (has_control(s, len))
		complain(r, NULL, NULL, "the line holds a control character");
	else if (text_file_mark(s, len))
		complain(r, NULL, NULL, "a byte order mark stands inside the file");
	else if (len > 0 && *s == '[')
		read_head(r, s, len);
	else if (len > INI_LINE_MAX)
		complain(r, NULL, NULL, "the line is longer than %d bytes", INI_LINE_MAX);
	else if (len > 0 && *s != ';' && *s != '#')
		read_pair(r, s, len);
}

static void
read_text(struct reader *r, const char *file, const char *text, size_t len)
{
	const char *end = text + len;
	struct why why;

	r->file = file;
	r->line = 0;
	r->now = NULL;
	r->lost = false;
	for (size_t i = 0; i < r->count; i++)
		r->entries[i].here = 0;
	if (text_file_check(text, len, &why)) {
		r->line = 1;
		complain(r, NULL, NULL, "%s", why.text);
		return;
	}
	text += text_file_mark(text, len);
	for (size_t next; text < end && !stops(r); text += next) {
		size_t n = text_file_line(text, (size_t)(end - text), &next);
		r->line++;
		read_line(r, text, text + n);
	}
}

static void
check_entry(struct reader *r, const struct entry *e)
{
	const struct ini_section *s = e->section;
	unsigned form = s->form ? s->form(e->fields) : 1;
	const char *key = NULL;

	for (const struct ini_key *k = s->keys; k->name; k++) {
		bool given = e->given >> (k - s->keys) & 1;
		if (!given && (k->needs & form))
			complain(r, e->head, k->name, "is missing");
		if (given && k->forms && !(k->forms & form))
			complain(r, e->head, k->name, "does not belong to this format");
	}
	const char *wrong = s->check && !r->e ? s->check(e->fields, &key) : NULL;
	if (wrong)
		complain(r, e->head, key, "%s", wrong);
}

static void
start(struct reader *r, const struct ini *ini, struct why *why)
{
	*r = (struct reader){.ini = ini, .why = why};
	ini->warnings->count = 0;
	for (const struct ini_section *s = ini->sections; s->name; s++)
		if (!s->open)
			set_defaults(s->keys, ini->out);
}

static enum err
finish(struct reader *r)
{
	for (size_t i = 0; i < r->count && !stops(r); i++) {
		r->file = r->entries[i].file;
		r->line = r->entries[i].line;
		check_entry(r, &r->entries[i]);
	}
	free(r->entries);
	return r->e;
}

enum err
ini_read(const struct ini *ini, const char *file, const char *text, size_t len, struct why *why)
{
	struct reader r;

	start(&r, ini, why);
	read_text(&r, file, text, len);
	return finish(&r);
}

static void
read_file(struct reader *r, const char *path, bool optional)
{
	char *text = NULL;
	size_t len = 0;
	struct why why = {""};
	enum err e = file_read(path, FILE_BYTES_MAX, &text, &len, &why);

	if (!e)
		read_text(r, path, text, len);
	else if (e != ERR_NOTFOUND || !optional)
		r->e = err_set(r->why, e, "%s", why.text);
	free(text);
}

static int
is_wanted(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return d->d_name[0] != '.' && n > 5 && strcmp(d->d_name + n - 5, ".conf") == 0;
}

static int
by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* The paths of file and of FILE.d in reading order; the caller frees each and *out. */
static enum err
list_files(char ***out, size_t *count, const char *file, struct why *why)
{
	struct dirent **found = NULL;
	char dir[PATH_MAX];
	int n = snprintf(dir, sizeof(dir), "%s.d", file);

	if (n < 0 || (size_t)n >= sizeof(dir))
		return err_set(why, ERR_LIMIT, "path too long: %.100s...", file);
	n = scandir(dir, &found, is_wanted, by_name);
	if (n < 0 && errno != ENOENT)
		return err_errno(why, "open directory %s", dir);
	n = n < 0 ? 0 : n;
	char **paths = calloc((size_t)n + 1, sizeof(*paths));
	bool ok = paths && (paths[0] = strdup(file));
	for (int i = 0; i < n; i++) {
		if (ok && asprintf(&paths[i + 1], "%s/%s", dir, found[i]->d_name) < 0) {
			paths[i + 1] = NULL;
			ok = false;
		}
		free(found[i]);
	}
	free(found);
	*out = paths;
	*count = paths ? (size_t)n + 1 : 0;
	return ok ? ERR_OK : err_set(why, ERR_NOMEM, "no memory to read %s", dir);
}

enum err
ini_load(const struct ini *ini, const char *file, struct why *why)
{
	struct reader r;
	char **paths = NULL;
	size_t count = 0;

	start(&r, ini, why);
	r.e = list_files(&paths, &count, file, why);
	for (size_t i = 0; i < count && !stops(&r); i++)
		read_file(&r, paths[i], ini->optional && i == 0);
	enum err e = finish(&r);
	for (size_t i = 0; i < count; i++)
		free(paths[i]);
	free(paths);
	return e;
}
