#include "foreign.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "hex.h"
#include "json.h"
#include "kept.h"
#include "print.h"

#define ID_HEX 32
#define MAGIC 4

static const struct {
	const char *what, *use;
} kinds[] = {
    [DEVICEFILE_RESIDUAL] = {"what encoding took from this device's deltas (error feedback)",
	"it goes into the next delta; leave it where it is"},
    [DEVICEFILE_VARIATE] = {"this device's control variate (SCAFFOLD)",
	"part of the job's state; leave it where it is"},
    [DEVICEFILE_LOCAL] = {"the values of the tensors that never leave this device (role \"local\")",
	"\"rivulet model local JOB -o FILE\" puts them into the job's model"},
    [DEVICEFILE_KEPT] = {"what a program keeps between its tasks, an optimizer's state for example",
	"the program is given it with its next task; leave it where it is"},
};

struct found {
	struct devicefile file;
	bool whole; /* its hash is right, or it has none */
	char job[ID_HEX + 1], task[ID_HEX + 1], base[65];
};

/* Where the head has no id, the file's name does. */
static void
name_job(struct found *f, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	static const uint8_t none[16];

	if (memcmp(f->file.job, none, sizeof(none)) != 0)
		hex_encode(f->job, f->file.job, sizeof(f->file.job));
	else if (strspn(name, "0123456789abcdef") == ID_HEX && name[ID_HEX] == '.')
		memcpy(f->job, name, ID_HEX);
	if (memcmp(f->file.task, none, sizeof(none)) != 0)
		hex_encode(f->task, f->file.task, sizeof(f->file.task));
	if (f->file.kind == DEVICEFILE_KEPT)
		hex_encode(f->base, f->file.base, sizeof(f->file.base));
}

static bool
read_start(const char *path, uint8_t *head, size_t room, uint64_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	bool good = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);

	if (good) {
		*len = (uint64_t)st.st_size;
		good = file_pread(fd, head, *len < room ? (size_t)*len : room, 0) == ERR_OK;
	}
	if (fd >= 0)
		close(fd);
	return good;
}

static void
print(const struct found *f)
{
	const struct devicefile *d = &f->file;

	cmd_print_line("kind     %s: %s", devicefile_name(d->kind), kinds[d->kind].what);
	cmd_print_line(
	    "job      %s", *f->job ? f->job : "not known: the file's name was the job's id");
	if (d->round)
		cmd_print_line("round    %llu", (unsigned long long)d->round);
	if (*f->task)
		cmd_print_line("task     %s", f->task);
	if (*d->trainer)
		cmd_print_line("trainer  %s", d->trainer);
	if (*f->base)
		cmd_print_line("base     %s", f->base);
	cmd_print_line("holds    %llu %s", (unsigned long long)d->count,
	    d->kind == DEVICEFILE_RESIDUAL || d->kind == DEVICEFILE_VARIATE ? "numbers" : "bytes");
	cmd_print_line("use      %s", kinds[d->kind].use);
	if (!f->whole)
		cmd_print_line("damaged  its hash is wrong: the device will not use it");
}

static void
print_json(const struct found *f)
{
	const struct devicefile *d = &f->file;
	struct json *doc = json_object();

	json_add_string(doc, "kind", devicefile_name(d->kind));
	json_add_string(doc, "job", f->job);
	json_add_u64(doc, "round", d->round);
	json_add_string(doc, "task", f->task);
	json_add_string(doc, "trainer", d->trainer);
	json_add_string(doc, "base", f->base);
	json_add_u64(doc, "count", d->count);
	json_add_bool(doc, "damaged", !f->whole);
	cmd_print_json(doc);
	json_free(doc);
}

bool
cmd_foreign_show(const char *path, bool json, enum err *e, struct why *why)
{
	uint8_t head[DEVICEFILE_HEAD_MAX] = {0};
	struct found f = {.job = ""};
	struct why inner = {""};
	struct kept k;
	uint64_t len = 0;

	*e = ERR_OK;
	if (!read_start(path, head, sizeof(head), &len) || len < MAGIC ||
	    (memcmp(head, "RVE1", MAGIC) != 0 && memcmp(head, "RVV1", MAGIC) != 0 &&
		memcmp(head, "RVL1", MAGIC) != 0 && memcmp(head, "RVK1", MAGIC) != 0))
		return false;
	*e = devicefile_decode(&f.file, head, len, &inner);
	if (*e) {
		*e = err_set(
		    why, *e, "%.150s is a damaged file of a device's: %.80s", path, inner.text);
		return true;
	}
	f.whole = kept_open(&k, f.file.kind, path, NULL) == ERR_OK;
	kept_close(&k);
	name_job(&f, path);
	if (json)
		print_json(&f);
	else
		print(&f);
	return true;
}

const char *
cmd_foreign_name(const char *path)
{
	static const struct {
		char magic[MAGIC + 1];
		const char *what;
	} others[] = {
	    {"RVO1", "a delta that waits in a device's outbox, signed: the device sends it"},
	    {"RVS1", "a delta in a coordinator's spool: \"rivuletd check\" looks at it"},
	    {"RVP1", "a packed data set: \"rivulet data show\" shows it"},
	    {"\200\2", "a pickle, as torch.save writes it: save the state_dict with safetensors"},
	    {"PK\3\4",
		"a zip, as torch.save and numpy.savez write it: save the tensors with "
		"safetensors"},
	    {"GGUF", "a GGUF file: no safetensors"},
	    {"\211HDF", "an HDF5 file, as Keras writes it: no safetensors"},
	};
	uint8_t head[MAGIC] = {0};
	uint64_t len = 0;

	if (!read_start(path, head, sizeof(head), &len))
		return NULL;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (len >= MAGIC && memcmp(head, others[i].magic, strlen(others[i].magic)) == 0)
			return others[i].what;
	return NULL;
}
