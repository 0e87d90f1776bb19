#include "vision.h"

#include <string.h>

/* A convolution without bias, and its norm: groups 0 is batch norm. */
static void
conv_norm(struct maker *m, const char *conv, const char *norm, uint32_t out, uint32_t kernel,
    uint32_t stride, uint32_t channels, uint32_t groups)
{
	maker_layer(m, "conv2d", conv);
	maker_u64(m, "out", out);
	maker_u64(m, "kernel", kernel);
	maker_u64(m, "stride", stride);
	maker_u64(m, "padding", kernel / 2);
	maker_bool(m, "bias", false);
	if (channels > 1)
		maker_u64(m, "groups", channels);
	maker_layer(m, groups ? "groupnorm" : "batchnorm", norm);
	if (groups)
		maker_u64(m, "groups", groups);
}

/* --- residual networks, with torchvision's names */

struct stage {
	unsigned index, blocks;
	uint32_t out, stride, groups;
};

/* Reads and leaves in `from` the name of the tensor between blocks. */
static void
block(struct maker *m, const struct stage *s, unsigned b, bool narrows, char from[MAKER_NAME])
{
	char conv[MAKER_NAME], norm[MAKER_NAME], name[MAKER_NAME], way[MAKER_NAME], in[MAKER_NAME];
	uint32_t stride = b == 0 ? s->stride : 1;

	memcpy(in, from, MAKER_NAME);
	maker_name(way, "%s", in);
	for (int half = 1; half <= 2; half++) {
		conv_norm(m, maker_name(conv, "layer%u.%u.conv%d", s->index, b, half),
		    maker_name(norm, "layer%u.%u.bn%d", s->index, b, half), s->out, 3,
		    half == 1 ? stride : 1, 1, s->groups);
		if (half == 1)
			maker_layer(m, "relu", maker_name(name, "layer%u.%u.relu1", s->index, b));
	}
	if (narrows) {
		maker_name(way, "layer%u.%u.downsample.1", s->index, b);
		maker_layer(m, "conv2d", maker_name(conv, "layer%u.%u.downsample.0", s->index, b));
		maker_inputs(m, in, NULL);
		maker_u64(m, "out", s->out);
		maker_u64(m, "kernel", 1);
		maker_u64(m, "stride", stride);
		maker_bool(m, "bias", false);
		maker_layer(m, s->groups ? "groupnorm" : "batchnorm", way);
		if (s->groups)
			maker_u64(m, "groups", s->groups);
	}
	maker_layer(m, "add", maker_name(name, "layer%u.%u.add", s->index, b));
	maker_inputs(m, norm, way);
	maker_layer(m, "relu", maker_name(from, "layer%u.%u.relu2", s->index, b));
}

static void
close_net(struct maker *m)
{
	maker_layer(m, "global_avgpool", "avgpool");
	maker_layer(m, "linear", "fc");
	maker_u64(m, "out", maker_get(m, "classes"));
	maker_word(m, "init", "torch");
}

static void
stages(struct maker *m, unsigned count, unsigned blocks, uint32_t width, uint32_t groups,
    char from[MAKER_NAME])
{
	for (unsigned i = 0; i < count; i++) {
		const struct stage s = {i + 1, blocks, width << i, i == 0 ? 1 : 2, groups};
		for (unsigned b = 0; b < s.blocks; b++)
			block(m, &s, b, b == 0 && i > 0, from);
	}
	close_net(m);
}

/* A small picture keeps its size at the beginning, as is usual with 32 pixels; a large one is quartered. */
void
vision_resnet18(struct maker *m)
{
	uint32_t groups = maker_get(m, "groups");
	bool small = maker_get(m, "side") < 64;
	char from[MAKER_NAME] = "relu";

	maker_layer(m, "conv2d", "conv1");
	maker_u64(m, "out", 64);
	maker_u64(m, "kernel", small ? 3 : 7);
	maker_u64(m, "stride", small ? 1 : 2);
	maker_u64(m, "padding", small ? 1 : 3);
	maker_bool(m, "bias", false);
	maker_layer(m, groups ? "groupnorm" : "batchnorm", "bn1");
	if (groups)
		maker_u64(m, "groups", groups);
	maker_layer(m, "relu", "relu");
	if (!small) {
		maker_layer(m, "maxpool2d", "maxpool");
		maker_u64(m, "kernel", 3);
		maker_u64(m, "stride", 2);
		maker_u64(m, "padding", 1);
		maker_name(from, "maxpool");
	}
	stages(m, 4, 2, 64, groups, from);
}

void
vision_resnet20(struct maker *m)
{
	uint32_t groups = maker_get(m, "groups");
	char from[MAKER_NAME] = "relu";

	conv_norm(m, "conv1", "bn1", 16, 3, 1, 1, groups);
	maker_layer(m, "relu", "relu");
	stages(m, 3, 3, 16, groups, from);
}

/* --- MobileNetV2, with torchvision's names */

/* The nearest multiple of 8 to width percent, not less than nine tenths of it. */
static uint32_t
scaled(const struct maker *m, uint32_t channels)
{
	uint32_t hundredths = channels * maker_get(m, "width"),
		 whole = (hundredths + 400) / 800 * 8;

	whole = whole < 8 ? 8 : whole;
	return whole * 1000 < hundredths * 9 ? whole + 8 : whole;
}

static void
relu6(struct maker *m, unsigned feature, const char *part)
{
	char name[MAKER_NAME];

	maker_layer(m, "relu6", maker_name(name, "features.%u.%s", feature, part));
}

/* An inverted residual: widen, depthwise, narrow. */
static void
inverted(struct maker *m, unsigned f, uint32_t in, uint32_t out, uint32_t stride, uint32_t times,
    char from[MAKER_NAME])
{
	char conv[MAKER_NAME], norm[MAKER_NAME], name[MAKER_NAME];
	uint32_t hidden = in * times;
	unsigned at = 0;

	if (times > 1) {
		conv_norm(m, maker_name(conv, "features.%u.conv.0.0", f),
		    maker_name(norm, "features.%u.conv.0.1", f), hidden, 1, 1, 1, 0);
		relu6(m, f, "conv.0.2");
		at = 1;
	}
	conv_norm(m, maker_name(conv, "features.%u.conv.%u.0", f, at),
	    maker_name(norm, "features.%u.conv.%u.1", f, at), hidden, 3, stride, hidden, 0);
	relu6(m, f, at ? "conv.1.2" : "conv.0.2");
	conv_norm(m, maker_name(conv, "features.%u.conv.%u", f, at + 1),
	    maker_name(norm, "features.%u.conv.%u", f, at + 2), out, 1, 1, 1, 0);
	if (stride == 1 && in == out) {
		maker_layer(m, "add", maker_name(name, "features.%u.add", f));
		maker_inputs(m, from, norm);
		memcpy(from, name, MAKER_NAME);
		return;
	}
	memcpy(from, norm, MAKER_NAME);
}

void
vision_mobilenet(struct maker *m)
{
	static const struct {
		uint32_t times, out, repeat, stride;
	} rows[] = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1},
	    {6, 160, 3, 2}, {6, 320, 1, 1}};
	char from[MAKER_NAME] = "features.0.2";
	uint32_t in = scaled(m, 32), last = maker_get(m, "width") > 100 ? scaled(m, 1280) : 1280;
	unsigned f = 1;

	conv_norm(m, "features.0.0", "features.0.1", in, 3, 2, 1, 0);
	maker_layer(m, "relu6", "features.0.2");
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
		for (uint32_t k = 0; k < rows[r].repeat; k++, f++) {
			uint32_t out = scaled(m, rows[r].out);
			inverted(m, f, in, out, k == 0 ? rows[r].stride : 1, rows[r].times, from);
			in = out;
		}
	conv_norm(m, "features.18.0", "features.18.1", last, 1, 1, 1, 0);
	maker_layer(m, "relu6", "features.18.2");
	maker_layer(m, "global_avgpool", "avgpool");
	maker_layer(m, "dropout", "classifier.0");
	json_add_double(m->last, "rate", 0.2);
	maker_layer(m, "linear", "classifier.1");
	maker_u64(m, "out", maker_get(m, "classes"));
	maker_word(m, "init", "torch");
}

/* --- keyword spotting: MLPerf Tiny's DS-CNN on 49 frames of 10 coefficients */

void
vision_ds_cnn(struct maker *m)
{
	char conv[MAKER_NAME], norm[MAKER_NAME], name[MAKER_NAME];
	uint32_t width = maker_get(m, "width");

	maker_layer(m, "conv2d", "conv0");
	maker_u64(m, "out", width);
	maker_pair(m, "kernel", 10, 4);
	maker_pair(m, "stride", 2, 2);
	maker_pair(m, "padding", 5, 1);
	maker_layer(m, "batchnorm", "bn0");
	maker_layer(m, "relu", "relu0");
	maker_layer(m, "dropout", "dropout0");
	json_add_double(m->last, "rate", 0.2);
	for (unsigned i = 1; i <= 4; i++) {
		maker_layer(m, "conv2d", maker_name(conv, "depthwise%u", i));
		maker_u64(m, "out", width);
		maker_u64(m, "kernel", 3);
		maker_u64(m, "padding", 1);
		maker_u64(m, "groups", width);
		maker_layer(m, "batchnorm", maker_name(norm, "depthwise%u.bn", i));
		maker_layer(m, "relu", maker_name(name, "depthwise%u.relu", i));
		maker_layer(m, "conv2d", maker_name(conv, "pointwise%u", i));
		maker_u64(m, "out", width);
		maker_u64(m, "kernel", 1);
		maker_layer(m, "batchnorm", maker_name(norm, "pointwise%u.bn", i));
		maker_layer(m, "relu", maker_name(name, "pointwise%u.relu", i));
	}
	maker_layer(m, "dropout", "dropout5");
	json_add_double(m->last, "rate", 0.4);
	close_net(m);
}
