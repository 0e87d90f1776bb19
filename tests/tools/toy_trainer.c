/* An external trainer without a training: moves every weight some way towards a fixed target.
 *
 *     toy_trainer honest|keeping|hostile DIRECTORY
 *     toy_trainer distance MODEL    how far its weights are from there
 *
 * An honest one goes three tenths of the way, with a little noise of its own; a keeping one, too, and keeps where it came to; a hostile one
 * does another harm each round. All of it depends on base, task and nothing else. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "file.h"
#include "prng.h"

#define MODEL_MAX (64U << 20)
#define TASK_MAX (1U << 20)

/* A file of the model's: its head, and the weights behind it. */
struct weights {
	char *file;
	size_t len, count;
	float *w;
};

static float
target(size_t i)
{
	return (float)(i * 37 % 101) / 101 - 0.5F;
}

static bool
weights_read(struct weights *m, const char *path)
{
	struct why why;

	if (file_read(path, MODEL_MAX, &m->file, &m->len, &why) != ERR_OK) {
		fprintf(stderr, "%s\n", why.text);
		return false;
	}
	struct bytes_reader r = bytes_reader(m->file, m->len);
	size_t head = 8 + (size_t)bytes_get_u64(&r);
	if (r.bad || head > m->len) {
		free(m->file);
		return false;
	}
	m->w = (float *)(void *)(m->file + head);
	m->count = (m->len - head) / sizeof(float);
	return true;
}

/* Mean distance of a model's weights from the target; infinite if one of them has gone far away. */
static int
distance(const char *path)
{
	struct weights m;
	double sum = 0;

	if (!weights_read(&m, path))
		return 1;
	for (size_t i = 0; i < m.count; i++) {
		double far = fabs((double)m.w[i] - (double)target(i));
		sum += far < 5 ? far : INFINITY;
	}
	printf("%.4f\n", sum / (double)m.count);
	free(m.file);
	return 0;
}

static void
honest(struct weights *m, struct prng *rng)
{
	for (size_t i = 0; i < m->count; i++)
		m->w[i] += 0.3F * (target(i) - m->w[i]) + 0.02F * (float)(prng_double(rng) - 0.5);
}

static void
hostile(struct weights *m, struct prng *rng, int round)
{
	for (size_t i = 0; i < m->count; i++) {
		switch (round % 4) {
		case 1: /* far the other way */
			m->w[i] -= 100 * (target(i) - m->w[i]);
			break;
		case 2: /* as far as floats go */
			m->w[i] = i % 3 ? 1e30F : -1e30F;
			break;
		case 3: /* noise */
			m->w[i] += 3000 * (float)(prng_double(rng) - 0.5);
			break;
		default: /* hidden: as long as an honest one */
			m->w[i] -= 0.3F * (target(i) - m->w[i]);
		}
	}
}

/* The round of DIRECTORY/task.json; *seed is the task's, and so this device's. -1 without one. */
static int
task_read(const char *dir, uint64_t *seed)
{
	char path[4096], *text;
	size_t len;
	struct why why;

	snprintf(path, sizeof(path), "%s/task.json", dir);
	if (file_read(path, TASK_MAX, &text, &len, &why) != ERR_OK)
		return -1;
	cJSON *task = cJSON_Parse(text);
	free(text);
	const cJSON *id = cJSON_GetObjectItem(task, "task"),
		    *round = cJSON_GetObjectItem(task, "round");
	int number = cJSON_IsNumber(round) ? round->valueint : -1;
	*seed = 0;
	for (const char *p = cJSON_IsString(id) ? id->valuestring : ""; *p; p++)
		*seed = *seed * 31 + (uint64_t)(unsigned char)*p;
	cJSON_Delete(task);
	return number;
}

static bool
save(const char *dir, const char *name, const char *data, size_t len)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "wb");
	if (!f)
		return false;
	bool done = fwrite(data, 1, len, f) == len;
	return fclose(f) == 0 && done;
}

static int
work(const char *how, const char *dir)
{
	static const char report[] = "{\"examples\": 10, \"steps\": 1, \"loss\": 1}";
	char path[4096];
	struct weights m;
	struct prng rng;
	uint64_t seed;
	int round = task_read(dir, &seed);

	snprintf(path, sizeof(path), "%s/base.safetensors", dir);
	if (round < 0 || !weights_read(&m, path))
		return 1;
	prng_seed(&rng, seed);
	if (strcmp(how, "hostile") == 0)
		hostile(&m, &rng, round);
	else
		honest(&m, &rng);
	bool done = save(dir, "after.safetensors", m.file, m.len) &&
	    save(dir, "report.json", report, sizeof(report) - 1) &&
	    (strcmp(how, "keeping") != 0 || save(dir, "keep.safetensors", m.file, m.len));
	free(m.file);
	return !done;
}

int
main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	if (strcmp(argv[1], "distance") == 0)
		return distance(argv[2]);
	return work(argv[1], argv[2]);
}
