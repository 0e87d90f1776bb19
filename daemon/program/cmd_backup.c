#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backup.h"
#include "buf.h"
#include "command.h"
#include "err.h"
#include "json.h"
#include "num.h"
#include "option.h"

#define RATE_DEFAULT ((uint64_t)64 << 20)
/* linux/ioprio.h is not everywhere: the idle class, for this process. */
#define IOPRIO_IDLE (3 << 13)
#define IOPRIO_PROCESS 1

/* Lowers this process's priority, so that rounds come first: on the processor, and on disks whose scheduler knows the idle class. */
static void
step_back(void)
{
	if (nice(10) < 0 || syscall(SYS_ioprio_set, IOPRIO_PROCESS, 0, IOPRIO_IDLE) != 0)
		return;
}

static int
print_json(const struct backup *b)
{
	struct json *doc = json_object();
	struct buf text;

	json_add_string(doc, "dir", b->dir);
	json_add_u64(doc, "files", b->files);
	json_add_u64(doc, "bytes", b->bytes);
	json_add_u64(doc, "incarnation", b->incarnation);
	json_add_bool(doc, "keys", b->keys);
	json_add_u64(doc, "tries", b->tries);
	buf_init(&text, 65536);
	enum err e = json_print(&text, doc, false);
	if (!e)
		printf("%s\n", buf_str(&text));
	buf_deinit(&text);
	json_free(doc);
	return e ? COMMAND_FAILED : COMMAND_OK;
}

static int
print_text(const struct backup *b)
{
	printf("copied %llu files, %llu bytes, of incarnation %llu to %s\n",
	    (unsigned long long)b->files, (unsigned long long)b->bytes,
	    (unsigned long long)b->incarnation, b->dir);
	printf(b->keys ? "the keys are in it: keep it as safe as %s/keys\n"
		       : "the keys are not in it: keep a copy of %s/keys elsewhere\n",
	    b->state_dir);
	return COMMAND_OK;
}

int
cmd_backup_main(const char *path, int argc, char **argv)
{
	struct backup b = {.rate = RATE_DEFAULT};
	const char *rate = NULL;
	bool json = false;
	const struct option_entry table[] = {
	    {"keys", 0, NULL, "also the keys: whoever has the copy can act as this coordinator",
		NULL, &b.keys},
	    {"rate", 0, "BYTES", "per second at most (suffix K, M or G; 64M; 0: no limit)", &rate,
		NULL},
	    {"json", 0, NULL, "print JSON", NULL, &json},
	    COMMAND_CONFIG(&path),
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	static const struct option_usage usage = {
	    "backup [--config FILE] [--keys] [--rate BYTES] [--json] DIR",
	    "Copies the state of the coordinator, running or not, to DIR, which must be new or "
	    "empty.\n"
	    "Exit codes: 0 done, 1 failed, 2 usage.",
	    1, 1};
	struct option_words words;
	struct why why = {""};
	int rc;

	if (!command_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	if (rate && !num_bytes(rate, &b.rate))
		return command_misused("--rate wants a number of bytes", &usage);
	struct config *config = command_config(path);
	if (!config)
		return COMMAND_FAILED;
	b.state_dir = config->state_dir;
	b.dir = words.words[0];
	step_back();
	rc = backup_make(&b, &why) ? command_fail_in(config->state_dir, &why)
	    : json		   ? print_json(&b)
				   : print_text(&b);
	free(config);
	return rc;
}
