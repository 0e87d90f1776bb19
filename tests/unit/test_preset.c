/* stages: gcc openssl address */
/* Presets: every one is a network that trains, with the parameters that its origin has; documents expanded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "net.h"
#include "preset.h"
#include "tensor.h"

static void
expand(struct job_spec *job, const char *model, const char *data)
{
	char text[1024], *whole;
	size_t len;
	struct why why = {""};

	snprintf(text, sizeof(text),
	    "{\"name\": \"n\", \"model\": %s, \"data\": {\"name\": \"d\"%s}, \"local\": "
	    "{\"epochs\": 1, "
	    "\"optimizer\": "
	    "{\"name\": \"sgd\", \"rate\": 0.1}}, \"round\": {\"goal\": 1}, \"stop\": {\"rounds\": "
	    "1}}",
	    model, data);
	whole = strdup(text);
	len = strlen(whole);
	if (preset_expand(&whole, &len, &why) || job_parse(job, whole, len, &why) ||
	    job_check(job, &why))
		fail_msg("%s: %s", model, why.text);
	free(whole);
}

/* Parameters without running statistics: as torchvision and the papers count them. */
static void
sizes(void **state)
{
	static const struct {
		const char *model;
		uint64_t elements;
	} rows[] = {{"{\"preset\": \"resnet18-bn\", \"set\": {\"side\": 224, \"classes\": 1000}}",
			11689512},
	    {"{\"preset\": \"resnet18-gn\", \"set\": {\"classes\": 100}}", 11220132},
	    {"{\"preset\": \"resnet20-gn\"}", 272474},
	    {"{\"preset\": \"mobilenetv2\", \"set\": {\"side\": 224, \"classes\": 1000}}", 3504872},
	    {"{\"preset\": \"ds-cnn\"}", 23756},
	    {"{\"preset\": \"char-lstm\", \"set\": {\"vocabulary\": 90}}", 822570},
	    {"{\"preset\": \"gpt\", \"set\": {\"vocabulary\": 65}}", 826368},
	    {"{\"preset\": \"gpt\", \"set\": {\"vocabulary\": 65, \"tied\": 1}}", 818048},
	    {"{\"preset\": \"autoencoder\"}", 267928}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct job_spec job;
		struct net *net = NULL;
		struct why why = {""};
		uint64_t counted = 0;
		expand(&job, rows[i].model, "");
		const struct recipe *r = &job.recipe;
		if (net_new(&net, &r->net, r->data.class_count, 1, true, 0, &why))
			fail_msg("%s: %s", rows[i].model, why.text);
		const struct tensor_table *t = net_tensors(net);
		for (size_t k = 0; k < t->count; k++)
			if (!strstr(t->items[k].name, ".running_"))
				counted += t->items[k].elements;
		if (counted != rows[i].elements)
			fail_msg("%s: %llu parameters", rows[i].model, (unsigned long long)counted);
		net_free(net);
		job_deinit(&job);
	}
}

/* Its own words win, but for layers; what is no preset stays to the byte. */
static void
documents(void **state)
{
	struct job_spec job;
	const char plain[] = "{ \"model\": {\"init\": \"00\"} }";
	char *text = strdup(plain);
	size_t len = strlen(text);

	(void)state;
	expand(&job, "{\"preset\": \"gpt\", \"label_smoothing\": 0.1}", ", \"window\": 128");
	assert_true(job.recipe.net.smoothing > 0.09f);
	assert_int_equal(job.recipe.data.window, 128);
	job_deinit(&job);
	assert_int_equal(preset_expand(&text, &len, NULL), ERR_OK);
	assert_string_equal(text, plain);
	free(text);
}

static void
refusals(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {{"{\"model\": {\"preset\": \"vgg\"}}", "no preset is called \"vgg\""},
	    {"{\"model\": {\"preset\": 7}}", "model.preset: must be a name"},
	    {"{\"model\": {\"preset\": \"gpt\", \"set\": {\"depth\": 2}}}", "no setting \"depth\""},
	    {"{\"model\": {\"preset\": \"gpt\", \"set\": {\"heads\": 0}}}",
		"heads must be a whole number from 1 to 1024"},
	    {"{\"model\": {\"preset\": \"gpt\", \"set\": {\"heads\": \"x\"}}}", "heads must be"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *text = strdup(rows[i].text);
		size_t len = strlen(text);
		struct why why = {""};
		assert_int_not_equal(preset_expand(&text, &len, &why), ERR_OK);
		if (!strstr(why.text, rows[i].says))
			fail_msg("\"%s\" is not in \"%s\"", rows[i].says, why.text);
		free(text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sizes),
	    cmocka_unit_test(documents),
	    cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
