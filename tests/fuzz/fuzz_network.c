/* Job documents written layer by layer, as the input's bytes say: the networks of those that are accepted are built and run. */
#include <stdarg.h>
#include <stdio.h>

#include "fuzz_network.h"

#define LAYERS 12
#define ROOM 8192

struct writer {
	const uint8_t *from, *end;
	char text[ROOM];
	size_t len;
	size_t layers; /* written so far */
};

static unsigned
take(struct writer *w, unsigned below)
{
	return w->from < w->end ? *w->from++ % below : 0;
}

static void __attribute__((format(printf, 2, 3))) say(struct writer *w, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	int n = vsnprintf(w->text + w->len, ROOM - w->len, fmt, args);
	va_end(args);
	require(n >= 0 && w->len + (size_t)n < ROOM);
	w->len += (size_t)n;
}

/* Small ones mostly, so that shapes meet; limits, and what lies past them. */
static unsigned
number(struct writer *w)
{
	static const unsigned all[] = {1, 2, 3, 4, 6, 8, 1, 2, 3, 4, 6, 8, 1, 2, 3, 4, 6, 8, 2, 4,
	    5, 7, 12, 16, 17, 33, 64, 255, 1024, 4096, 65536, 1000000, 0};

	return all[take(w, sizeof(all) / sizeof(all[0]))];
}

static void
say_number(struct writer *w, const char *key, unsigned often)
{
	if (take(w, 8) < often)
		say(w, ",\"%s\":%u", key, number(w));
}

static void
say_word(struct writer *w, const char *key, const char *word, unsigned often)
{
	if (take(w, 8) < often)
		say(w, ",\"%s\":%s", key, word);
}

static void
say_pair(struct writer *w, const char *key, unsigned often)
{
	if (take(w, 8) >= often)
		return;
	unsigned height = number(w), width = number(w);
	if (take(w, 3) == 0)
		say(w, ",\"%s\":[%u,%u]", key, height, width);
	else
		say(w, ",\"%s\":%u", key, height);
}

/* Of an earlier layer, mostly; one in sixteen is nobody's. */
static void
say_name(struct writer *w)
{
	unsigned i = take(w, 16);

	if (i == 15)
		say(w, "\"nobody\"");
	else if (i == 14 || w->layers == 0)
		say(w, "\"input\"");
	else
		say(w, "\"l%zu\"", w->layers - 1 - i % w->layers);
}

static void
say_inputs(struct writer *w, unsigned count)
{
	say(w, ",\"inputs\":[");
	for (unsigned i = 0; i < count; i++) {
		if (i > 0)
			say(w, ",");
		say_name(w);
	}
	say(w, "]");
}

static void
say_adapted(struct writer *w)
{
	unsigned how = take(w, 8);

	if (how < 3) {
		say(w, ",\"weights\":");
		say_name(w);
	}
	if (how == 2 || how == 3 || how == 4) {
		say(w, ",\"lora\":{\"rank\":%u", number(w));
		say_word(w, "alpha", "0.5", 2);
		say_word(w, "alpha", "1e9", 1);
		say(w, "}");
	}
}

static void
say_init(struct writer *w)
{
	static const char *const all[] = {"he", "glorot", "zero", "torch", "normal"};

	if (take(w, 4) == 0)
		say(w, ",\"init\":\"%s\"", all[take(w, 5)]);
}

static void
say_keys(struct writer *w, enum layer_type type)
{
	static const char *const pools[] = {"mean", "max", "first", "last"};
	bool wide = type == LAYER_LINEAR || type == LAYER_CONV2D || type == LAYER_CONV1D ||
	    type == LAYER_EMBEDDING || type == LAYER_LSTM || type == LAYER_GRU;

	if (wide)
		say(w, ",\"out\":%u", number(w));
	if (type == LAYER_CONV2D || type == LAYER_MAXPOOL2D || type == LAYER_AVGPOOL2D) {
		say_pair(w, "kernel", 8);
		say_pair(w, "stride", 2);
		say_pair(w, "padding", 2);
	}
	if (type == LAYER_CONV1D) {
		say_number(w, "kernel", 8);
		say_number(w, "stride", 2);
		say_number(w, "padding", 2);
	}
	if (type == LAYER_CONV2D || type == LAYER_CONV1D || type == LAYER_GROUPNORM)
		say_number(w, "groups", type == LAYER_GROUPNORM ? 8 : 3);
	if (type == LAYER_EMBEDDING)
		say(w, ",\"vocabulary\":%u", number(w));
	if (type == LAYER_LSTM || type == LAYER_GRU) {
		say_number(w, "layers", 3);
		say_word(w, "output", "\"last\"", 3);
	}
	if (type == LAYER_ATTENTION) {
		say_number(w, "heads", 8);
		say_word(w, "causal", "true", 4);
		say_word(w, "positions", "\"rotary\"", 3);
		say_word(w, "dropout", "0.5", 3);
	}
	if (type == LAYER_LEAKY_RELU)
		say_word(w, "slope", "0.25", 2);
	if (type == LAYER_ELU)
		say_word(w, "alpha", "2", 2);
	if (type == LAYER_SCALE)
		say(w, ",\"by\":%s", take(w, 2) ? "-0.5" : "3");
	if (type == LAYER_POOL_STEPS)
		say(w, ",\"by\":\"%s\"", pools[take(w, 4)]);
	if (type == LAYER_CONCAT)
		say_number(w, "dim", 3);
	if ((wide && type != LAYER_EMBEDDING) || type == LAYER_ATTENTION) {
		say_word(w, "bias", "false", 2);
		say_init(w);
	}
	if (type == LAYER_LINEAR)
		say_adapted(w);
}

static void
say_layer(struct writer *w)
{
	enum layer_type type = (enum layer_type)take(w, LAYER_TYPES);

	say(w, "%s{\"type\":\"%s\",\"name\":\"l%zu\"", w->layers > 0 ? "," : "",
	    net_spec_type_name(type), w->layers);
	if (type == LAYER_ADD || type == LAYER_CONCAT || type == LAYER_MULTIPLY)
		say_inputs(w, 2 + take(w, 2));
	else if (take(w, 8) == 0)
		say_inputs(w, 1);
	say_keys(w, type);
	say(w, "}");
	w->layers++;
}

static void
say_data(struct writer *w)
{
	unsigned dims = take(w, 4);

	say(w, ",\"data\":{\"name\":\"d\"");
	if (dims == 0)
		say(w, ",\"window\":%u", number(w));
	for (unsigned i = 0; i < dims; i++)
		say(w, "%s%u", i > 0 ? "," : ",\"shape\":[", number(w));
	if (dims > 0)
		say(w, "]");
	say_number(w, "classes", 3);
	say(w, "}");
}

static void
say_loss(struct writer *w)
{
	static const char *const all[] = {"mse", "bce", "cross_entropy"};
	unsigned which = take(w, 3);

	say(w, "\"loss\":\"%s\"", all[which]);
	if (which == 2) {
		say_word(w, "label_smoothing", "0.125", 2);
		say_word(w, "ignore_index", "1", 2);
		say_word(w, "class_weights", "[1,2,0.5]", 1);
	} else {
		say_word(w, "target", "\"input\"", 2);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct writer w = {.from = data, .end = data + len};
	struct job_spec job;
	struct why why = {""};

	say(&w, "{\"name\":\"n\",\"model\":{");
	say_loss(&w);
	say(&w, ",\"layers\":[");
	unsigned count = 1 + take(&w, LAYERS);
	for (unsigned i = 0; i < count; i++)
		say_layer(&w);
	say(&w, "]}");
	say_data(&w);
	say(&w,
	    ",\"local\":{\"epochs\":1,\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}},"
	    "\"round\":{\"goal\":1},\"stop\":{\"rounds\":1}}");
	if (job_parse(&job, w.text, w.len, &why)) {
		require(why.text[0] != '\0');
		job_deinit(&job);
		return 0;
	}
	network_try(&job.recipe);
	job_deinit(&job);
	return 0;
}
