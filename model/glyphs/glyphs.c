#include "glyphs.h"

#include <stdlib.h>
#include <string.h>

#include "num.h"
#include "pen.h"
#include "prng.h"
#include "shapes.h"

#define PIXELS (GLYPHS_SIDE * GLYPHS_SIDE)

/* A writer: what all examples of one hand have in common. Lengths are in boxes unless they say pixels. */
struct hand {
	uint64_t seed; /* of its examples */
	double slant; /* shift of x per y, rightwards going up */
	double turn; /* tangent of half the angle of the base line */
	double height, width; /* of a digit, pixels */
	double radius; /* of the pen, pixels */
	double jitter; /* of each point, from example to example */
	double ink;
	uint32_t way[GLYPHS_CLASSES]; /* favourite way of each digit */
	uint32_t favourites[2];
	struct {
		double x, y;
	} habit[GLYPHS_CLASSES][SHAPES_POINTS_MAX]; /* how this hand bends each point */
};

static double
between(struct prng *r, double low, double high)
{
	return low + (high - low) * prng_double(r);
}

/* Sum of four uniform numbers: a bell of about standard deviation `spread`, never beyond 3.5 of them. */
static double
bell(struct prng *r, double spread)
{
	double sum = -2;

	for (int i = 0; i < 4; i++)
		sum += prng_double(r);
	return sum * spread * 1.732;
}

static void
hand_make(struct hand *h, uint64_t seed, uint64_t number)
{
	struct prng r;

	prng_seed2(&r, seed, number);
	*h = (struct hand){
	    .seed = prng_u64(&r),
	    .slant = between(&r, -0.1, 0.35),
	    .turn = bell(&r, 0.04),
	    .height = between(&r, 17, 19.5),
	    .width = between(&r, 11, 14),
	    .radius = between(&r, 0.8, 1.6),
	    .jitter = between(&r, 0.02, 0.045),
	    .ink = between(&r, 200, 255),
	};
	for (size_t d = 0; d < GLYPHS_CLASSES; d++) {
		h->way[d] = (uint32_t)prng_below(&r, shapes_digits[d].ways);
		for (size_t i = 0; i < SHAPES_POINTS_MAX; i++) {
			h->habit[d][i].x = bell(&r, 0.04);
			h->habit[d][i].y = bell(&r, 0.032);
		}
	}
	h->favourites[0] = (uint32_t)prng_below(&r, GLYPHS_CLASSES);
	h->favourites[1] =
	    (h->favourites[0] + 1 + (uint32_t)prng_below(&r, GLYPHS_CLASSES - 1)) % GLYPHS_CLASSES;
}

/* Where one example's box lies on the paper. */
struct placement {
	double x, y; /* centre */
	double width, height, slant;
	double cosine, sine;
};

static struct placement
place(const struct hand *h, struct prng *r)
{
	double turn = h->turn + bell(r, 0.03), square = turn * turn;

	return (struct placement){
	    .x = GLYPHS_SIDE / 2.0 + bell(r, 0.5),
	    .y = GLYPHS_SIDE / 2.0 + bell(r, 0.5),
	    .width = h->width * (1 + bell(r, 0.08)),
	    .height = h->height * (1 + bell(r, 0.06)),
	    .slant = h->slant + bell(r, 0.1),
	    .cosine = (1 - square) / (1 + square),
	    .sine = 2 * turn / (1 + square),
	};
}

/* Moves the middle of what the points span to (x, y). */
static void
centre(struct pen_point *points, size_t n, double x, double y)
{
	struct pen_point low = points[0], high = points[0];

	for (size_t i = 1; i < n; i++) {
		low.x = points[i].x < low.x ? points[i].x : low.x;
		low.y = points[i].y < low.y ? points[i].y : low.y;
		high.x = points[i].x > high.x ? points[i].x : high.x;
		high.y = points[i].y > high.y ? points[i].y : high.y;
	}
	for (size_t i = 0; i < n; i++) {
		points[i].x += x - (low.x + high.x) / 2;
		points[i].y += y - (low.y + high.y) / 2;
	}
}

static void
draw(const struct hand *h, uint32_t digit, struct prng *r, uint8_t *pixels)
{
	const struct shapes_digit *shapes = &shapes_digits[digit];
	struct pen_point points[SHAPES_POINTS_MAX];
	struct placement p = place(h, r);
	struct pen_picture picture = {pixels, GLYPHS_SIDE, h->radius * (1 + bell(r, 0.12)), h->ink};
	bool usual = prng_below(r, 3) != 0;
	uint32_t other = (uint32_t)prng_below(r, shapes->ways);
	const struct shapes_way *way = &shapes->way[usual ? h->way[digit] : other];

	for (size_t i = 0; i < way->count; i++) {
		double x =
		    way->points[i].x / 100.0 - 0.5 + h->habit[digit][i].x + bell(r, h->jitter);
		double y =
		    way->points[i].y / 100.0 - 0.5 + h->habit[digit][i].y + bell(r, h->jitter);
		double px = x * p.width - y * p.height * p.slant, py = y * p.height;
		points[i].x = px * p.cosine - py * p.sine;
		points[i].y = px * p.sine + py * p.cosine;
		points[i].kind = way->points[i].kind;
	}
	centre(points, way->count, p.x, p.y);
	pen_draw(&picture, points, way->count);
}

/* Example `index` of a hand, the same whatever else is drawn. */
static void
example(struct dataset *d, size_t at, const struct hand *h, uint64_t index, double skew)
{
	struct prng r;

	prng_seed2(&r, h->seed, index);
	uint32_t any = (uint32_t)prng_below(&r, GLYPHS_CLASSES);
	bool preferred = prng_double(&r) < skew;
	uint32_t favourite = h->favourites[prng_below(&r, 2)];
	uint32_t digit = preferred ? favourite : any;
	d->labels[at] = (int32_t)digit;
	draw(h, digit, &r, d->bytes + at * PIXELS);
}

static enum err
allocate(struct dataset *out, uint32_t count)
{
	size_t bytes;

	if (count == 0)
		return ERR_INVALID;
	if (count > DATASET_EXAMPLES_MAX || !num_mul(count, PIXELS, &bytes))
		return ERR_LIMIT;
	struct dataset d = {
	    .count = count,
	    .shape = {1, GLYPHS_SIDE, GLYPHS_SIDE},
	    .dims = 3,
	    .features = PIXELS,
	    .classes = GLYPHS_CLASSES,
	    .bytes = calloc(bytes, 1),
	    .labels = calloc(count, sizeof(*d.labels)),
	};
	if (!d.bytes || !d.labels) {
		dataset_deinit(&d);
		return ERR_NOMEM;
	}
	*out = d;
	return ERR_OK;
}

enum err
glyphs_make(struct dataset *out, uint64_t seed, uint64_t hand, uint32_t count, double skew)
{
	struct hand h;

	if (!(skew >= 0 && skew <= 1))
		return ERR_INVALID;
	enum err e = allocate(out, count);
	if (e)
		return e;
	hand_make(&h, seed, hand);
	for (uint32_t i = 0; i < count; i++)
		example(out, i, &h, i, skew);
	return ERR_OK;
}

enum err
glyphs_mixed(
    struct dataset *out, uint64_t seed, uint64_t first_hand, uint32_t hands, uint32_t count)
{
	if (hands == 0)
		return ERR_INVALID;
	enum err e = allocate(out, count);
	if (e)
		return e;
	for (uint32_t k = 0; k < hands && k < count; k++) {
		struct hand h;
		hand_make(&h, seed, first_hand + k);
		for (uint32_t i = k, index = 0; i < count; i += hands, index++) {
			example(out, i, &h, index, 0);
			if (count - i <= hands)
				break;
		}
	}
	return ERR_OK;
}
