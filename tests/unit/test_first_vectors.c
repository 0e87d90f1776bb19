/* stages: gcc openssl address */
/* First models as version 8904a80 made them, when it drew them whole, in memory: tests/vectors/first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>

#include "buf.h"
#include "coordinator_fixture.h"
#include "jobs_inside.h"
#include "net.h"

#define FOLDER "tests/vectors/first"

static char *
document_of(const char *name, size_t *len)
{
	char path[256], *text = NULL;
	struct why why = {""};

	snprintf(path, sizeof(path), FOLDER "/%s.json", name);
	if (file_read(path, 1 << 20, &text, len, &why))
		fail_msg("%s", why.text);
	return text;
}

static enum err
put_row(struct store_db *db, void *arg, struct why *why)
{
	(void)why;
	return store_model_put(db, arg);
}

/* The models that documents begin with, as if they had been uploaded. */
static void
upload_all(struct coordinator *c)
{
	DIR *d = opendir(FOLDER);
	struct dirent *ent;
	unsigned count = 0;

	assert_non_null(d);
	while ((ent = readdir(d))) {
		char path[512], *data = NULL;
		size_t len = 0;
		if (!strstr(ent->d_name, ".safetensors"))
			continue;
		snprintf(path, sizeof(path), FOLDER "/%s", ent->d_name);
		assert_int_equal(file_read(path, 1 << 20, &data, &len, &c->why), ERR_OK);
		struct store_model row = {.bytes = len};
		assert_int_equal(
		    models_put(c->s.models, data, 8, data + 8, len - 8, row.id, &c->why), ERR_OK);
		assert_int_equal(store_write(c->s.store, put_row, &row, &c->why), ERR_OK);
		free(data);
		count++;
	}
	closedir(d);
	assert_true(count > 0);
}

/* What a network holds once net_init has drawn it, as a simulator or a program of one process has it. */
static void
whole(const char *text, size_t len, const uint8_t job[16], uint8_t id[32])
{
	struct modelfile_meta meta = {.round = 0};
	struct job_spec spec;
	struct net *net = NULL;
	struct buf head;
	struct why why = {""};

	assert_int_equal(job_parse(&spec, text, len, &why), ERR_OK);
	assert_int_equal(
	    net_new(&net, &spec.recipe.net, spec.recipe.data.class_count, 1, false, 0, &why),
	    ERR_OK);
	net_init(net, spec.seed);
	hex_encode(meta.job, job, 16);
	buf_init(&head, MODELFILE_HEADER_MAX + MODELFILE_PREFIX);
	assert_int_equal(modelfile_header(&head, net_tensors(net), &meta), ERR_OK);
	struct hash *h = hash_new();
	assert_non_null(h);
	hash_start(h);
	hash_update(h, head.data, head.len);
	hash_update(h, net_params(net), net_tensors(net)->bytes);
	hash_finish(h, id);
	hash_free(h);
	buf_deinit(&head);
	net_free(net);
	job_deinit(&spec);
}

/* Through the coordinator, which never holds one; and whole, from the same numbers. */
static void
are_the_same(void **state)
{
	struct coordinator *c = *state;
	FILE *f = fopen(FOLDER "/ids", "r");
	char name[64], hex[65];
	unsigned long long bytes;
	unsigned count = 0;

	assert_non_null(f);
	upload_all(c);
	while (fscanf(f, "%63s %64s %llu", name, hex, &bytes) == 3) {
		uint8_t job[16], want[32], drawn[32];
		size_t len = 0;
		char *text = document_of(name, &len);
		struct models_map *map = NULL;

		assert_true(hex_decode(want, 32, hex, 64));
		submit(c, text, job);
		const struct job *j = jobs_find(c->s.engine, job);
		if (memcmp(j->facts.model, want, 32) != 0)
			fail_msg("%s: another first model", name);
		assert_int_equal(models_get(c->s.models, want, &map, &c->why), ERR_OK);
		assert_int_equal(map->bytes, bytes);
		models_map_release(map);
		if (j->work->spec.recipe.init[0] == 0) {
			whole(text, len, job, drawn);
			if (memcmp(drawn, want, 32) != 0)
				fail_msg("%s: another first model in memory", name);
		}
		free(text);
		count++;
	}
	fclose(f);
	assert_true(count >= 12);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, coordinator_setup, coordinator_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH(are_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
