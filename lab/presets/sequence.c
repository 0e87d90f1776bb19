#include "sequence.h"

void
sequence_char_lstm(struct maker *m)
{
	uint32_t words = maker_get(m, "vocabulary");

	maker_layer(m, "embedding", "embedding");
	maker_u64(m, "vocabulary", words);
	maker_u64(m, "out", maker_get(m, "embedding"));
	maker_layer(m, "lstm", "lstm");
	maker_u64(m, "out", maker_get(m, "hidden"));
	maker_u64(m, "layers", maker_get(m, "layers"));
	if (maker_get(m, "last"))
		maker_word(m, "output", "last");
	maker_layer(m, "linear", "fc");
	maker_u64(m, "out", words);
	maker_word(m, "init", "torch");
}

static void
normal(struct maker *m)
{
	maker_word(m, "init", "normal");
	json_add_double(m->last, "deviation", 0.02);
}

static void
linear(struct maker *m, const char *name, uint32_t out)
{
	maker_layer(m, "linear", name);
	maker_u64(m, "out", out);
	normal(m);
}

/* A block in the order of GPT-2: norm, attention, add; norm, widen, GELU, narrow, add. */
static void
gpt_block(struct maker *m, unsigned i, uint32_t width, char from[MAKER_NAME])
{
	char attention[MAKER_NAME], middle[MAKER_NAME], name[MAKER_NAME];

	maker_layer(m, "layernorm", maker_name(name, "h.%u.ln_1", i));
	maker_inputs(m, from, NULL);
	maker_layer(m, "attention", maker_name(attention, "h.%u.attn", i));
	maker_u64(m, "heads", maker_get(m, "heads"));
	maker_bool(m, "causal", true);
	normal(m);
	maker_layer(m, "add", maker_name(middle, "h.%u.add_1", i));
	maker_inputs(m, from, attention);
	maker_layer(m, "layernorm", maker_name(name, "h.%u.ln_2", i));
	linear(m, maker_name(name, "h.%u.mlp.c_fc", i), 4 * width);
	maker_layer(m, "gelu", maker_name(name, "h.%u.mlp.act", i));
	maker_word(m, "approximate", "tanh");
	linear(m, maker_name(name, "h.%u.mlp.c_proj", i), width);
	maker_layer(m, "add", maker_name(from, "h.%u.add_2", i));
	maker_inputs(m, middle, name);
}

void
sequence_gpt(struct maker *m)
{
	uint32_t width = maker_get(m, "width"), words = maker_get(m, "vocabulary");
	char from[MAKER_NAME] = "wpe";

	maker_layer(m, "embedding", "wte");
	maker_u64(m, "vocabulary", words);
	maker_u64(m, "out", width);
	normal(m);
	maker_layer(m, "positions", "wpe");
	for (unsigned i = 0; i < maker_get(m, "layers"); i++)
		gpt_block(m, i, width, from);
	maker_layer(m, "layernorm", "ln_f");
	maker_layer(m, "linear", "lm_head");
	maker_u64(m, "out", words);
	maker_bool(m, "bias", false);
	if (maker_get(m, "tied"))
		maker_word(m, "weights", "wte");
	else
		normal(m);
}

/* MLPerf Tiny's, of 640 spectral values: 4 layers, a narrow one, 4 layers. */
void
sequence_autoencoder(struct maker *m)
{
	uint32_t width = maker_get(m, "width"), narrow = maker_get(m, "narrow");
	char name[MAKER_NAME];

	for (unsigned i = 1; i <= 9; i++) {
		maker_layer(m, "linear", maker_name(name, "fc%u", i));
		maker_u64(m, "out", i == 5 ? narrow : width);
		maker_layer(m, "batchnorm", maker_name(name, "bn%u", i));
		maker_layer(m, "relu", maker_name(name, "relu%u", i));
	}
	maker_layer(m, "linear", "fc10");
	maker_u64(m, "out", maker_get(m, "features"));
}
