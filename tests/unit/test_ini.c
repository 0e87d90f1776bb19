/* stages: gcc address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "file.h"
#include "guess.h"
#include "ini.h"
#include "member.h"

/* A table with everything that a table may have. */

struct shop {
	char name[32], town[32];
	char days[64]; /* many: what was given, one behind the other */
	int size;
	bool open;
	struct stall {
		char name[16], fruit[16], colour[16];
		int kind;
	} stalls[2];
	size_t stall_count;
};

static enum err
set_text(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	if (strlen(value) >= k->size)
		return err_set(why, ERR_INVALID, "too long");
	strcpy(field, value);
	return ERR_OK;
}

static enum err
add_text(const struct ini_key *k, void *field, const char *value, struct why *why)
{
	(void)why;
	strncat(field, value, k->size - strlen(field) - 1);
	return ERR_OK;
}

#define FRUIT 1u
#define FLOWERS 2u

static const char *const sizes[] = {"small", "medium", "large", NULL};
static const char *const no_yes[] = {"no", "yes", NULL};
static const char *const stall_kinds[] = {"fruit", "flowers", NULL};

static const struct ini_key shop_keys[] = {
    {"name", set_text, MEMBER(shop, name), .fallback = "corner"},
    {"town", set_text, MEMBER(shop, town), .fallback = NULL},
    {"day", add_text, MEMBER(shop, days), .fallback = "Mo", .many = true},
    {"size", ini_choice, MEMBER(shop, size), .fallback = "medium", .words = sizes},
    {"open", ini_choice, MEMBER(shop, open), .words = no_yes},
    {"owner", NULL, 0, 0, .fallback = NULL},
    {.name = NULL},
};
static const struct ini_key stall_keys[] = {
    {"kind", ini_choice, MEMBER(stall, kind), .words = stall_kinds, .needs = FRUIT | FLOWERS},
    {"fruit", set_text, MEMBER(stall, fruit), .forms = FRUIT, .needs = FRUIT},
    {"colour", set_text, MEMBER(stall, colour), .fallback = "red", .forms = FLOWERS},
    {.name = NULL},
};

static void *
open_stall(void *out, const char *name, struct why *why)
{
	struct shop *s = out;

	if (s->stall_count == 2) {
		err_set(why, ERR_LIMIT, "no more stalls");
		return NULL;
	}
	struct stall *stall = &s->stalls[s->stall_count++];
	snprintf(stall->name, sizeof(stall->name), "%s", name);
	return stall;
}

static unsigned
stall_form(const void *fields)
{
	return 1u << ((const struct stall *)fields)->kind;
}

static const char *
stall_check(void *fields, const char **key)
{
	*key = "fruit";
	return strcmp(((struct stall *)fields)->fruit, "durian") == 0 ? "smells" : NULL;
}

static const struct ini_section sections[] = {
    {.name = "shop", .keys = shop_keys},
    {.name = "stall",
	.keys = stall_keys,
	.open = open_stall,
	.form = stall_form,
	.once = true,
	.check = stall_check},
    {.name = NULL},
};

static struct shop shop;
static struct ini_warnings warnings;
static struct ini ini = {.sections = sections, .out = &shop, .warnings = &warnings};
static struct why why;

static enum err
parse(const char *text)
{
	memset(&shop, 0, sizeof(shop));
	memset(&why, 0, sizeof(why));
	return ini_read(&ini, "f", text, strlen(text), &why);
}

static void
test_values(void **state)
{
	(void)state;
	assert_int_equal(parse(""), ERR_OK);
	assert_string_equal(shop.name, "corner");
	assert_string_equal(shop.days, "Mo");
	assert_int_equal(shop.size, 1);
	assert_false(shop.open);
	assert_int_equal(parse("[shop]\nname = a\nday = Tu\nday = We\nsize = large\nopen = yes\n"
			       "[stall s]\nkind = flowers\n"),
	    ERR_OK);
	assert_string_equal(shop.name, "a");
	/* The first of many takes the place of the default. */
	assert_string_equal(shop.days, "TuWe");
	assert_int_equal(shop.size, 2);
	assert_true(shop.open);
	assert_string_equal(shop.stalls[0].name, "s");
	assert_string_equal(shop.stalls[0].colour, "red");
}

static const struct {
	const char *text, *why, *dotted;
} mistakes[] = {
    {"[shop]\nnme = x\n", "f:2: [shop] nme: unknown key (did you mean name?)",
	"f:2: shop.nme: unknown key (did you mean name?)"},
    /* The nearest, and not the first that is near enough. */
    {"[shop]\ntopen = x\n", "f:2: [shop] topen: unknown key (did you mean open?)", NULL},
    {"[shop]\nabcdefgh = x\n", "f:2: [shop] abcdefgh: unknown key", NULL},
    /* Nobody is sent to a key that was removed. */
    {"[shop]\nowners = x\n", "f:2: [shop] owners: unknown key", NULL},
    {"[shp]\n", "f:1: [shp]: unknown section (did you mean [shop]?)",
	"f:1: shp: unknown section (did you mean [shop]?)"},
    {"[stal fruit]\n", "f:1: [stal fruit]: unknown section (did you mean [stall NAME]?)", NULL},
    {"[colours]\n", "f:1: [colours]: unknown section", NULL},
    {"[shop]\nname = a\n[shop]\nname = b\n", "f:4: [shop] name: given twice", NULL},
    {"[shop]\nsize = huge\n", "f:2: [shop] size: \"huge\" is not small, medium or large", NULL},
    {"[shop]\nopen = maybe\n", "f:2: [shop] open: \"maybe\" is not no or yes", NULL},
    {"[stall a]\nkind = fruit\n", "f:1: [stall a] fruit: is missing",
	"f:1: stall a.fruit: is missing"},
    {"[stall a]\n", "f:1: [stall a] kind: is missing", NULL},
    {"[stall a]\nkind = flowers\nfruit = x\n",
	"f:1: [stall a] fruit: does not belong to this format", NULL},
    {"[stall a]\nkind = fruit\nfruit = durian\n", "f:1: [stall a] fruit: smells", NULL},
    {"[stall a]\nkind = flowers\n[stall a]\n", "f:3: [stall a]: given twice", NULL},
    {"[stall a]\n[stall b]\n[stall c]\n", "f:3: [stall c]: no more stalls", NULL},
    {"name = x\n", "f:1: name: stands before any [section]", NULL},
    /* One file behind another. */
    {"[shop]\n\xef\xbb\xbf[stall a]\n", "f:2: a byte order mark stands inside the file", NULL},
    {"\xef\xbb\xbf\xef\xbb\xbf[shop]\n", "f:1: a byte order mark stands inside the file", NULL},
    {"\xff\xfe[",
	"f:1: this is UTF-16; UTF-8 is read, which \"iconv -f UTF-16 -t UTF-8\" makes of it", NULL},
    {"[shop]\rname = a\r\rname = b\n", "f:4: [shop] name: given twice", NULL},
};

static void
test_mistakes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		assert_int_equal(parse(mistakes[i].text), ERR_INVALID);
		assert_string_equal(why.text, mistakes[i].why);
		if (!mistakes[i].dotted)
			continue;
		ini.dotted = true;
		assert_int_equal(parse(mistakes[i].text), ERR_INVALID);
		assert_string_equal(why.text, mistakes[i].dotted);
		ini.dotted = false;
	}
}

/* What stands in the first line behind [shop], and what is read of it: name, town, days, size, open, the stall's name and colour; each
 * mistake. */
/* clang-format off */
static const struct {
	const char *text, *read;
} lines[] = {
    {"name = a", "a//Mo/10//"},
    {"name=a", "a//Mo/10//"},
    {"name : a", "a//Mo/10//"},
    {"name = a:b", "a:b//Mo/10//"},
    {"name : a=b", "a=b//Mo/10//"},
    {"name == a", "= a//Mo/10//"},
    {"name =\ta", "a//Mo/10//"},
    {"name\t=\ta\t", "a//Mo/10//"},
    {"\tname = a  ", "a//Mo/10//"},
    {"name = a ; comment", "a//Mo/10//"},
    {"name = a\t;comment", "a//Mo/10//"},
    {"name = a;b", "a;b//Mo/10//"},
    {"name = a ;b ;c", "a//Mo/10//"},
    {"name = a # b", "a # b//Mo/10//"},
    {"name = ;c", "//Mo/10//"},
    {"name =;c", ";c//Mo/10//"},
    {"name = # c", "# c//Mo/10//"},
    {"name = \"a ; b\"", "\"a//Mo/10//"},
    {"name = 'a'", "corner//Mo/10//f:2: [shop] name: 'a' stands in quotes: leave them out\n"},
    {"name = \"a\"", "corner//Mo/10//f:2: [shop] name: \"a\" stands in quotes: leave them out\n"},
    {"name = 'a", "'a//Mo/10//"},
    {"name = a\\", "a\\//Mo/10//"},
    {"name = \303\244 \303\266", "\303\244 \303\266//Mo/10//"},
    {"name = a\205", "a\205//Mo/10//"},
    {"name = [a]", "[a]//Mo/10//"},
    {"name =", "//Mo/10//"},
    {"name = \t", "//Mo/10//"},
    {";", "corner//Mo/10//"},
    {"# name = b", "corner//Mo/10//"},
    {"  ; name = b", "corner//Mo/10//"},
    {"\t# name = b", "corner//Mo/10//"},
    {"name", "corner//Mo/10//f:2: neither a [section] nor \"key = value\" nor a comment\n"},
    {"name ; = b", "corner//Mo/10//f:2: neither a [section] nor \"key = value\" nor a comment\n"},
    {"name ;= b", "corner//Mo/10//f:2: neither a [section] nor \"key = value\" nor a comment\n"},
    {"na;me = b", "corner//Mo/10//f:2: [shop] na;me: unknown key (did you mean name?)\n"},
    {"na ;me = b", "corner//Mo/10//f:2: neither a [section] nor \"key = value\" nor a comment\n"},
    {"name;=b", "corner//Mo/10//f:2: [shop] name;: unknown key (did you mean name?)\n"},
    {": x", "corner//Mo/10//f:2: [shop] : unknown key\n"},
    {"=", "corner//Mo/10//f:2: [shop] : unknown key\n"},
    {"name a = b", "corner//Mo/10//f:2: [shop] name a: unknown key (did you mean name?)\n"},
    {"Name = a", "corner//Mo/10//f:2: [shop] Name: unknown key (did you mean name?)\n"},
    {"name = a\n  b", "a//Mo/10//f:3: neither a [section] nor \"key = value\" nor a comment\n"},
    {"name = a\n  town = b", "a/b/Mo/10//"},
    {"name = a\n\ttown : b\n", "a/b/Mo/10//"},
    {"name = a\n ; no\n town = b", "a/b/Mo/10//"},
    {"name = a\r\ntown = b\r\n", "a/b/Mo/10//"},
    {"name = a\rtown = b", "a/b/Mo/10//"},
    {"name = a\013b", "corner//Mo/10//f:2: the line holds a control character\n"},
    {"name\177= a", "corner//Mo/10//f:2: the line holds a control character\n"},
    {"xabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij = a", "corner//Mo/10//f:2: [shop] xabcdefghijabcdefghijabcdefghijabcdefghi: unknown key\n"},
    {"nameabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghij : a", "corner//Mo/10//f:2: [shop] nameabcdefghijabcdefghijabcdefghijabcdef: unknown key\n"},
    {"name = a\ntown = b ; c\n[shop]\nday = Mo", "a/b/Mo/10//"},
    {"[shop] ; comment\nname = a", "a//Mo/10//"},
    {"[shop]\t;\nname = a", "a//Mo/10//"},
    {"[shop];\nname = a", "a//Mo/10//"},
    {"[shop]x\nname = a", "corner//Mo/10//f:2: something follows the section's bracket\n"},
    {"[shop] name = a", "corner//Mo/10//f:2: something follows the section's bracket\n"},
    {"[shop\nname = a", "corner//Mo/10//f:2: not a [section]\n"},
    {"[ shop]\nname = a", "corner//Mo/10//f:2: [ shop]: unknown section\n"},
    {"[shop ]\nname = a", "corner//Mo/10//f:2: [shop ]: unknown section (did you mean [shop]?)\n"},
    {"[]\nname = a", "corner//Mo/10//f:2: []: unknown section\n"},
    {"[shop]]\nname = a", "corner//Mo/10//f:2: something follows the section's bracket\n"},
    {"  [shop]\n  name = a", "a//Mo/10//"},
    {"[stall  s]\nkind = flowers", "corner//Mo/10/sred/"},
    {"[stall s ]\nkind = flowers", "corner//Mo/10/s red/"},
    {"[stall]\nkind = flowers", "corner//Mo/10//f:2: [stall]: unknown section (did you mean [stall NAME]?)\n"},
    {"[stall a]b]\nkind = flowers", "corner//Mo/10//f:2: something follows the section's bracket\n"},
    {"[stall a;b]\nkind = flowers\ncolour = x ; y", "corner//Mo/10/a;bx/"},
    {"[Shop]\nname = a", "corner//Mo/10//f:2: [Shop]: unknown section (did you mean [shop]?)\n"},
    {"\357\273\277name = a", "corner//Mo/10//f:2: a byte order mark stands inside the file\n"},
    {"\357\273\277", "corner//Mo/10//f:2: a byte order mark stands inside the file\n"},
    {"name = \357\273\277a", "\357\273\277a//Mo/10//"},
    {"name = a\n\357\273\277town = b", "a//Mo/10//f:3: a byte order mark stands inside the file\n"},
    {"name = a\n \357\273\277[shop]", "a//Mo/10//f:3: a byte order mark stands inside the file\n"},
    {"owner = x ; y", "corner//Mo/10//"},
    {"open = yes ; no", "corner//Mo/11//"},
    {"size = large # no", "corner//Mo/10//f:2: [shop] size: \"large # no\" is not small, medium or large\n"},
};
/* clang-format on */

static char told[512];

static void
tell(void *context, const char *text)
{
	(void)context;
	strcat(told, text);
	strcat(told, "\n");
}

static void
test_lines(void **state)
{
	struct ini_notes notes = {.mistake = tell};
	char text[256], read[1024];

	(void)state;
	ini.notes = &notes;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		told[0] = '\0';
		snprintf(text, sizeof(text), "[shop]\n%s\n", lines[i].text);
		enum err e = parse(text);
		assert_int_equal(e, *told ? ERR_INVALID : ERR_OK);
		snprintf(read, sizeof(read), "%s/%s/%s/%d%d/%s%s/%s", shop.name, shop.town,
		    shop.days, shop.size, shop.open, shop.stalls[0].name, shop.stalls[0].colour,
		    told);
		assert_string_equal(read, lines[i].read);
		ini_notes_deinit(&notes);
	}
	ini.notes = NULL;
}

/* A line as long as may be, whatever is long in it, and one byte more. */
static void
test_long_lines(void **state)
{
	static const struct {
		const char *begin, *end, *why;
	} rows[] = {
	    {";", "", ""},
	    {"name = x ; ", "", ""},
	    {"name = x ; ", "y", ""},
	    {"town = ", "", "f:2: [shop] town: too long"},
	    {"", "= x", "f:2: [shop] 0000000000000000000000000000000000000000: unknown key"},
	};
	char *text = malloc(2 * INI_LINE_MAX);

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		const char *begin = rows[i / 2].begin, *end = rows[i / 2].end;
		size_t n = INI_LINE_MAX - strlen(begin) - strlen(end) + i % 2;
		memset(text, '0', 2 * INI_LINE_MAX);
		size_t at = (size_t)sprintf(text, "[shop]\n\t%s", begin);
		text[at] = '0';
		sprintf(text + at + n, "%s  \n", end);
		assert_int_equal(parse(text), i % 2 || *rows[i / 2].why ? ERR_INVALID : ERR_OK);
		assert_string_equal(
		    why.text, i % 2 ? "f:2: the line is longer than 8192 bytes" : rows[i / 2].why);
	}
	free(text);
}

/* A key that was removed is a warning, whatever its value and however often. */
static void
test_removed(void **state)
{
	char text[512] = "[shop]\n";

	(void)state;
	assert_int_equal(parse("[shop]\nowner = me\nname = x\nowner =\n"), ERR_OK);
	assert_string_equal(shop.name, "x");
	assert_int_equal(warnings.count, 2);
	assert_string_equal(
	    warnings.text[0].text, "f:2: [shop] owner: is no longer known and has no effect");
	assert_string_equal(
	    warnings.text[1].text, "f:4: [shop] owner: is no longer known and has no effect");
	assert_int_equal(parse(""), ERR_OK);
	assert_int_equal(warnings.count, 0);
	for (int i = 0; i < 2 * INI_WARNINGS_MAX; i++)
		strcat(text, "owner = x\n");
	assert_int_equal(parse(text), ERR_OK);
	assert_int_equal(warnings.count, INI_WARNINGS_MAX);
}

static void
test_guess(void **state)
{
	size_t best = GUESS_NONE;

	(void)state;
	assert_false(guess_is_nearer("abc", "xyz", &best));
	assert_true(guess_is_nearer("kitten", "kittxxn", &best));
	assert_int_equal(best, 2);
	assert_false(guess_is_nearer("kitten", "kittxxn", &best));
	assert_true(guess_is_nearer("kitten", "kiten", &best));
	assert_true(guess_is_nearer("kitten", "kitten", &best));
	assert_int_equal(best, 0);
	best = GUESS_NONE;
	assert_false(guess_is_nearer(
	    "a2345678901234567890123456789012", "a2345678901234567890123456789012", &best));
}

/* --- files */

static char dir[] = "/tmp/test_ini.XXXXXX";

static int
enter(void **state)
{
	(void)state;
	return mkdtemp(dir) && chdir(dir) == 0 && mkdir("f.d", 0755) == 0 ? 0 : -1;
}

static int
leave(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static void
put(const char *path, const char *text)
{
	assert_int_equal(file_write(path, text, strlen(text), 0644, NULL), ERR_OK);
}

static enum err
load(void)
{
	memset(&shop, 0, sizeof(shop));
	memset(&why, 0, sizeof(why));
	return ini_load(&ini, "f", &why);
}

static void
test_order(void **state)
{
	(void)state;
	put("f", "[shop]\nname = file\ntown = file\nday = We\n[stall s]\nkind = fruit\n");
	put("f.d/20-b.conf", "[shop]\nname = twenty\nday = Fr\n");
	put("f.d/10-a.conf", "[shop]\nname = ten\ntown = ten\nday = Th\nowner = x\n");
	/* It completes the section of another file, which may stand there again. */
	put("f.d/30-c.conf", "[stall s]\nfruit = pear\n");
	put("f.d/.hidden.conf", "nonsense");
	put("f.d/notes.txt", "nonsense");
	put("f.d/.conf", "nonsense");
	assert_int_equal(load(), ERR_OK);
	assert_string_equal(shop.name, "twenty");
	assert_string_equal(shop.town, "ten");
	assert_string_equal(shop.days, "WeThFr");
	assert_int_equal(shop.stall_count, 1);
	assert_string_equal(shop.stalls[0].fruit, "pear");
	assert_int_equal(warnings.count, 1);
	assert_string_equal(warnings.text[0].text,
	    "f.d/10-a.conf:5: [shop] owner: is no longer known and has no effect");
}

static void
test_mistakes_name_the_file(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
	    {"[shop]\nnme = x\n", "f.d/40-d.conf:2: [shop] nme: unknown key (did you mean name?)"},
	    {"[shop]\nname = a\nname = b\n", "f.d/40-d.conf:3: [shop] name: given twice"},
	    {"[stall s]\nkind = fruit\n[stall s]\n", "f.d/40-d.conf:3: [stall s]: given twice"},
	    {"name = a\n", "f.d/40-d.conf:1: name: stands before any [section]"},
	    /* What a complete section lacks is said where it began. */
	    {"[stall s]\nkind = flowers\n", "f:5: [stall s] fruit: does not belong to this format"},
	    {"[stall t]\n", "f.d/40-d.conf:1: [stall t] kind: is missing"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		put("f.d/40-d.conf", cases[i].text);
		assert_int_equal(load(), ERR_INVALID);
		assert_string_equal(why.text, cases[i].why);
	}
	/* No file that would make the reader wait, and none that is not there. */
	assert_int_equal(unlink("f.d/40-d.conf") || mkfifo("f.d/40-d.conf", 0600), 0);
	assert_int_equal(load(), ERR_INVALID);
	assert_string_equal(why.text, "f.d/40-d.conf is not a regular file");
	assert_int_equal(unlink("f.d/40-d.conf") || symlink("nowhere", "f.d/40-d.conf"), 0);
	assert_int_equal(load(), ERR_NOTFOUND);
	assert_non_null(strstr(why.text, "f.d/40-d.conf"));
	assert_int_equal(unlink("f.d/40-d.conf"), 0);
}

static void
test_absent(void **state)
{
	(void)state;
	assert_int_equal(rename("f", "g"), 0);
	assert_int_equal(load(), ERR_NOTFOUND);
	assert_string_equal(why.text, "open f: No such file or directory");
	ini.optional = true;
	put("f.d/30-c.conf", "");
	assert_int_equal(load(), ERR_OK);
	assert_string_equal(shop.name, "twenty");
	ini.optional = false;
	assert_int_equal(rename("f.d", "h.d") || rename("g", "f"), 0);
	put("f", "[shop]\nname = file\n");
	assert_int_equal(load(), ERR_OK);
	assert_string_equal(shop.name, "file");
	/* FILE.d is a directory or nothing. */
	put("f.d", "");
	assert_int_not_equal(load(), ERR_OK);
	assert_non_null(strstr(why.text, "f.d"));
	assert_int_equal(unlink("f.d"), 0);
}

static void
test_many_files(void **state)
{
	char path[32], text[64];

	(void)state;
	assert_int_equal(mkdir("f.d", 0755), 0);
	put("f", "");
	for (int i = 99; i >= 0; i--) {
		snprintf(path, sizeof(path), "f.d/%02d.conf", i);
		snprintf(text, sizeof(text), "[shop]\nname = n%d\n", i);
		put(path, text);
	}
	assert_int_equal(load(), ERR_OK);
	assert_string_equal(shop.name, "n99");
}

/* --- all mistakes, and places */

static void
test_every_mistake(void **state)
{
	static const char text[] = "[shop]\nnam = x\nsize = tiny\n[shp]\nname = y\n[shop]\n"
				   "town = 'Ulm'\nname = corner\nnonsense\n[stall a]\n";
	struct ini_notes notes = {.mistake = tell};

	(void)state;
	ini.notes = &notes;
	told[0] = '\0';
	assert_int_equal(parse(text), ERR_INVALID);
	assert_string_equal(told,
	    "f:2: [shop] nam: unknown key (did you mean name?)\n"
	    "f:3: [shop] size: \"tiny\" is not small, medium or large\n"
	    "f:4: [shp]: unknown section (did you mean [shop]?)\n"
	    "f:7: [shop] town: 'Ulm' stands in quotes: leave them out\n"
	    "f:9: neither a [section] nor \"key = value\" nor a comment\n"
	    "f:10: [stall a] kind: is missing\nf:10: [stall a] fruit: is missing\n");
	assert_string_equal(why.text, "f:2: [shop] nam: unknown key (did you mean name?)");
	assert_string_equal(shop.name, "corner");
	ini_notes_deinit(&notes);
	ini.notes = NULL;
}

static void
test_places(void **state)
{
	struct ini_notes notes = {.mistake = NULL};

	(void)state;
	ini.notes = &notes;
	assert_int_equal(parse("[shop]\nday = Mo\nday = Tu\n\nname = x\n"), ERR_OK);
	assert_string_equal(ini_notes_place(&notes, shop.name, INI_LAST), "f:5: [shop] name: ");
	assert_string_equal(ini_notes_place(&notes, shop.town, INI_LAST), "");
	assert_string_equal(ini_notes_place(&notes, shop.days, 0), "f:2: [shop] day: ");
	assert_string_equal(ini_notes_place(&notes, shop.days, 1), "f:3: [shop] day: ");
	ini_notes_deinit(&notes);
	ini.notes = NULL;
}

/* As completion and manual pages want them: those that may be written. */
static void
test_list(void **state)
{
	struct buf text;

	(void)state;
	buf_init(&text, 4096);
	assert_int_equal(ini_list(&text, sections), ERR_OK);
	assert_string_equal(buf_str(&text),
	    "setting\tshop\tname\t\tcorner\t\n"
	    "setting\tshop\ttown\t\t\t\n"
	    "setting\tshop\tday\t\tMo\t\n"
	    "setting\tshop\tsize\t\tmedium\tsmall|medium|large\n"
	    "setting\tshop\topen\t\t\tno|yes\n"
	    "setting\tstall NAME\tkind\t\t\tfruit|flowers\n"
	    "setting\tstall NAME\tfruit\t\t\t\n"
	    "setting\tstall NAME\tcolour\t\tred\t\n");
	buf_deinit(&text);
	buf_init(&text, 40);
	assert_int_equal(ini_list(&text, sections), ERR_LIMIT);
	buf_deinit(&text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_values),
	    cmocka_unit_test(test_mistakes),
	    cmocka_unit_test(test_lines),
	    cmocka_unit_test(test_long_lines),
	    cmocka_unit_test(test_removed),
	    cmocka_unit_test(test_guess),
	    cmocka_unit_test(test_order),
	    cmocka_unit_test(test_mistakes_name_the_file),
	    cmocka_unit_test(test_absent),
	    cmocka_unit_test(test_many_files),
	    cmocka_unit_test(test_every_mistake),
	    cmocka_unit_test(test_places),
	    cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
