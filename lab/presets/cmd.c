#include "cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "net.h"
#include "num.h"
#include "option.h"
#include "options.h"
#include "preset.h"
#include "print.h"
#include "recipe.h"

/* "KEY=NUMBER" into the settings; which there are, the preset knows. */
static enum err
put_setting(struct json *settings, const char *word, struct why *why)
{
	const char *equals = strchr(word, '=');
	char key[64];
	uint64_t number;

	if (!equals || equals == word || (size_t)(equals - word) >= sizeof(key) ||
	    !num_u64(equals + 1, UINT32_MAX, &number))
		return err_set(why, ERR_INVALID, "--set wants KEY=NUMBER, not \"%.60s\"", word);
	snprintf(key, sizeof(key), "%.*s", (int)(equals - word), word);
	if (json_get(settings, key))
		return err_set(why, ERR_INVALID, "--set %s is there twice", key);
	json_add_u64(settings, key, number);
	return ERR_OK;
}

static void
print_list(void)
{
	static const char *const heads[] = {"PRESET", "SETTINGS", "WHAT"};
	struct cmd_table t;

	cmd_print_start(&t, heads, 3);
	for (const struct preset *p = preset_list(); p->name; p++) {
		char text[CMD_PRINT_CELL_MAX] = "";
		size_t n = 0;
		for (const struct preset_setting *s = p->settings; s->name; s++)
			if (n < sizeof(text))
				n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s=%u",
				    n ? " " : "", s->name, s->value);
		cmd_print_cell(&t, "%s", p->name);
		cmd_print_cell(&t, "%s", text);
		cmd_print_cell(&t, "%s", p->help);
	}
	cmd_print_end(&t);
}

/* Do settings that are each in range make a network, too? */
static enum err
check(const struct json *model, const struct json *data, struct why *why)
{
	struct json *doc = json_object(), *named = json_copy(data), *local = json_object();
	struct json *optimizer = json_object();
	struct recipe recipe;
	struct net *net = NULL;

	json_add_string(named, "name", "data");
	json_add_string(optimizer, "name", "sgd");
	json_add_double(optimizer, "rate", 0.1);
	json_add_u64(local, "epochs", 1);
	json_add(local, "optimizer", optimizer);
	json_add(doc, "model", json_copy(model));
	json_add(doc, "data", named);
	json_add(doc, "local", local);
	enum err e = recipe_parse(&recipe, doc, true, why);
	if (!e) {
		const struct net_part whole = {.spec = &recipe.net,
		    .classes = recipe.data.class_count,
		    .last = recipe.net.layer_count,
		    .max_batch = 1,
		    .contexts = 1,
		    .planned = 1};
		e = net_new_part(&net, &whole, why);
	}
	net_free(net);
	recipe_deinit(&recipe);
	json_free(doc);
	return e;
}

/* What a job document has to say of the network and its data. */
static enum err
print_preset(const char *name, const struct json *settings, struct why *why)
{
	struct json *model = NULL, *data = NULL, *out = json_object();
	enum err e = preset_model(&model, &data, name, settings, why);

	if (!e) {
		e = check(model, data, why);
		json_add(out, "model", model);
		json_add(out, "data", data);
	}
	if (!e)
		cmd_print_json(out);
	json_free(out);
	return e;
}

int
cmd_preset_main(int argc, char **argv)
{
	const char *set = NULL;
	const struct option_entry table[] = {
	    {"set", 's', "KEY=NUMBER", "a setting of the preset; may be given several times", &set,
		NULL},
	    {.name = NULL}};
	const struct option_usage usage = {.usage = "preset [NAME [--set KEY=NUMBER]...]",
	    .about = "Prints a well-known network as a job's \"model\", and what it needs of "
		     "\"data\"; without\n"
		     "a name, what there is. A job may also say \"model\": {\"preset\": NAME, "
		     "\"set\": {...}}.",
	    .least = 0,
	    .most = 1};
	struct option_words words, sets;
	struct why why = {""};
	int rc;

	if (!cmd_options_take(&words, table, &usage, argc, argv, &rc))
		return rc;
	if (words.count == 0) {
		print_list();
		return CMD_OK;
	}
	struct json *settings = json_object();
	enum err e = option_all(&sets, table, "set", argc, argv, &why);
	for (size_t i = 0; !e && i < sets.count; i++)
		e = put_setting(settings, sets.words[i], &why);
	if (!e)
		e = print_preset(words.words[0], settings, &why);
	json_free(settings);
	return e ? cmd_options_fail(e, &why) : CMD_OK;
}
