#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin.h"
#include "array.h"
#include "cmd.h"
#include "csv.h"
#include "data_source.h"
#include "dataset.h"
#include "err.h"
#include "hex.h"
#include "json.h"
#include "num.h"
#include "options.h"
#include "pack.h"
#include "packed.h"
#include "print.h"
#include "session.h"

#define SIDE_MAX 4096 /* pixels of an example */
#define CLASSES_SHOWN 12

/* "rivulet data": packs sets, and shows what is in a packed one. */

struct choice {
	const char *out, *size, *label, *columns, *separator, *header, *missing, *classes, *group,
	    *alpha;
	bool grey, regression, json;
};

static struct json *
names_list(const char *names)
{
	struct json *list = json_array();

	for (const char *end; (end = strchr(names, '\n')); names = end + 1) {
		char *one = strndup(names, (size_t)(end - names));
		if (one)
			json_push(list, json_new_string(one));
		free(one);
	}
	return list;
}

static struct json *
describe(const struct packed *p, const char *names, const char *hash)
{
	struct json *o = json_object(), *shape = json_array();
	struct dataset d = {0};

	array_shape(&d, &p->array);
	for (unsigned i = 0; i < d.dims; i++)
		json_push(shape, json_new_u64(d.shape[i]));
	json_add_u64(o, "examples", p->array.count);
	json_add(o, "shape", shape);
	json_add_string(o, "type", p->array.type == DATASET_U8 ? "u8" : "f32");
	if (p->classes)
		json_add_u64(o, "classes", p->classes);
	else
		json_add_u64(o, "targets", p->target_width);
	if (p->names_bytes)
		json_add(o, "names", names_list(names));
	if (p->groups)
		json_add_u64(o, "groups", p->groups);
	json_add_u64(o, "bytes", packed_length(p));
	json_add_string(o, "sha256", hash);
	return o;
}

static void
print_names(const char *names)
{
	size_t n = 0;

	for (const char *end; (end = strchr(names, '\n')) && n < CLASSES_SHOWN; names = end + 1)
		cmd_print_part("%s%.*s", n++ ? ", " : "names     ", (int)(end - names), names);
	cmd_print_line("%s", *names ? ", ..." : "");
}

static void
show(const struct packed *p, const char *names, const uint8_t hash[32], bool json)
{
	char hex[65], shape[DATASET_SHAPE_TEXT];
	struct dataset d = {0};

	hex_encode(hex, hash, 32);
	if (json) {
		struct json *o = describe(p, names, hex);
		cmd_print_json(o);
		json_free(o);
		return;
	}
	array_shape(&d, &p->array);
	cmd_print_line("examples  %zu of shape %s, %s", p->array.count,
	    dataset_shape_text(shape, d.shape, d.dims),
	    p->array.type == DATASET_U8 ? "pixels" : "numbers");
	if (p->classes)
		printf("classes   %u\n", p->classes);
	else
		printf("targets   %u\n", p->target_width);
	if (p->names_bytes)
		print_names(names);
	if (p->groups)
		printf("groups    %u\n", p->groups);
	cmd_print_line("bytes     %llu", (unsigned long long)packed_length(p));
	cmd_print_line("sha256    %s", hex);
}

static int
show_main(int argc, char **argv)
{
	bool json = false;
	const struct option_entry table[] = {
	    {"json", 0, NULL, "print JSON", NULL, &json}, {NULL, 0, NULL, NULL, NULL, NULL}};
	const struct option_usage usage = {
	    "data show FILE [--json]", "What is in a packed set. Its hash is checked.", 1, 1};
	struct option_words words;
	struct packed p;
	struct why why;
	char *names = NULL;
	uint8_t hash[32];
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = pack_show(&p, &names, hash, words.words[0], &why);
	if (e)
		return cmd_options_fail(e, &why);
	show(&p, names, hash, json);
	free(names);
	return CMD_OK;
}

/* "HxW". */
static enum err
read_size(const char *text, uint32_t *height, uint32_t *width, struct why *why)
{
	char first[16];
	const char *x = strchr(text, 'x');
	uint64_t h, w;

	if (!x || (size_t)(x - text) >= sizeof(first))
		return err_set(why, ERR_INVALID, "--size wants HEIGHTxWIDTH, as 32x32");
	snprintf(first, sizeof(first), "%.*s", (int)(x - text), text);
	if (!num_u64(first, SIDE_MAX, &h) || !num_u64(x + 1, SIDE_MAX, &w) || h < 1 || w < 1)
		return err_set(why, ERR_INVALID, "--size wants two numbers from 1 to %d", SIDE_MAX);
	*height = (uint32_t)h;
	*width = (uint32_t)w;
	return ERR_OK;
}

static enum err
read_word(const char *option, const char *text, const char *const *words, int *out, struct why *why)
{
	for (int i = 0; text && words[i]; i++)
		if (strcmp(words[i], text) == 0) {
			*out = i;
			return ERR_OK;
		}
	return text ? err_set(why, ERR_INVALID, "--%s: \"%.40s\" is not known", option, text)
		    : ERR_OK;
}

static enum err
pack_csv(
    struct packed *p, uint8_t hash[32], const char *file, const struct choice *c, struct why *why)
{
	int separator = DATA_GUESS, header = DATA_HEADER_GUESS;
	enum err e = read_word("separator", c->separator, data_source_separators, &separator, why);

	if (!e)
		e = read_word("header", c->header, data_source_headers, &header, why);
	const struct csv_form how = {.label = c->label,
	    .columns = c->columns,
	    .group = c->group,
	    .classes = c->classes,
	    .separator = (enum data_separator)separator,
	    .header = (enum data_header)header,
	    .missing = c->missing,
	    .regression = c->regression};
	return e ? e : pack_table(p, hash, c->out, file, &how, why);
}

static enum err
pack(struct packed *p, uint8_t hash[32], const char *from, const struct choice *c, struct why *why)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct pack_pictures pictures = {.folder = from,
	    .grey = c->grey,
	    .decoders = cores < 1 ? 1
		: cores > 16	  ? 16
				  : (unsigned)cores};
	struct stat st;
	enum err e = ERR_OK;

	if (stat(from, &st) != 0)
		return err_errno(why, "look at %.200s", from);
	if (!S_ISDIR(st.st_mode))
		return pack_csv(p, hash, from, c, why);
	int alpha = IMAGE_ALPHA_WHITE;
	if (c->size)
		e = read_size(c->size, &pictures.height, &pictures.width, why);
	if (!e)
		e = read_word("alpha", c->alpha, image_alphas, &alpha, why);
	pictures.alpha = (enum image_alpha)alpha;
	return e ? e : pack_pictures(p, hash, c->out, &pictures, why);
}

/* A file that is too large or of another kind is a wrong file. */
static int
fail(enum err e, const struct why *why)
{
	bool input = e == ERR_LIMIT || e == ERR_UNSUPPORTED || e == ERR_NUMERIC || e == ERR_TIMEOUT;

	return cmd_options_fail(input ? ERR_INVALID : e, why);
}

static int
pack_main(int argc, char **argv)
{
	struct choice c = {.out = NULL};
	const struct option_entry table[] = {
	    {"out", 'o', "FILE", "the packed set", &c.out, NULL},
	    {"size", 0, "HxW", "pictures: scale them to this height and width", &c.size, NULL},
	    {"grey", 0, NULL, "pictures: one channel", NULL, &c.grey},
	    {"alpha", 0, "WORD",
		"pictures: white (default) lies below what is transparent; drop: opacity is passed "
		"over",
		&c.alpha, NULL},
	    {"label", 0, "COLUMN", "table: name or number from 0 (default: last)", &c.label, NULL},
	    {"columns", 0, "A,B", "table: the features (default: all others)", &c.columns, NULL},
	    {"group", 0, "COLUMN", "table: for partition = column", &c.group, NULL},
	    {"classes", 0, "A,B", "table: names in order (default: sorted)", &c.classes, NULL},
	    {"separator", 0, "WORD", "table: comma, semicolon or tab", &c.separator, NULL},
	    {"header", 0, "WORD", "table: yes or no", &c.header, NULL},
	    {"missing", 0, "WORD", "table: skip, or a number", &c.missing, NULL},
	    {"regression", 0, NULL, "table: the label is a number to predict", NULL, &c.regression},
	    {"json", 0, NULL, "print JSON", NULL, &c.json},
	    {NULL, 0, NULL, NULL, NULL, NULL},
	};
	const struct option_usage usage = {"data pack FOLDER|FILE -o OUT",
	    "Packs a folder with a folder of PNG or JPEG pictures per class, or a CSV table, into "
	    "one file\nfor [data NAME] format = packed.",
	    1, 1};
	struct option_words words;
	struct packed p;
	struct why why;
	uint8_t hash[32];
	char *names = NULL;
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	enum err e = c.out ? pack(&p, hash, words.words[0], &c, &why)
			   : err_set(&why, ERR_INVALID, "-o FILE is needed");
	if (!e)
		e = pack_show(&p, &names, hash, c.out, &why);
	if (e)
		return fail(e, &why);
	show(&p, names, hash, c.json);
	free(names);
	return CMD_OK;
}

int
cmd_data_main(int argc, char **argv)
{
	static const struct cmd_verb verbs[] = {
	    {"pack", pack_main, "pictures or a table into one file"},
	    {"show", show_main, "what is in such a file"},
	    {NULL, NULL, NULL},
	};

	return cmd_admin_verbs("data", verbs, argc, argv);
}
