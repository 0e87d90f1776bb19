#include "panels.h"

#include <stdio.h>
#include <string.h>

#include "screen.h"

#define PANELS_MAX 2
#define SERIES (PANELS_MAX * SCALARS_MEANT_MAX)

struct panel {
	const char *title;
	size_t first, count; /* of the series */
};

struct panels {
	struct panel panels[PANELS_MAX];
	size_t count;
	struct series series[SERIES];
	size_t series_count;
};

static void
begin(struct panels *p, const char *metric)
{
	char tags[SCALARS_MEANT_MAX][SCALARS_TAG_MAX];
	size_t n = scalars_meant(metric, tags);

	p->panels[p->count++] = (struct panel){metric, p->series_count, n};
	/* What is trained before what is evaluated, as rounds have it. */
	while (n-- > 0)
		series_init(&p->series[p->series_count++], tags[n], SERIES_ROUND);
}

/* "train" of "loss/train"; of a tag without one all of it. */
static const char *
label_of(const struct series *s)
{
	const char *slash = strchr(s->tag, '/');

	return slash && strncmp(s->tag, "metrics/", 8) != 0 ? slash + 1 : s->tag;
}

static enum err
draw(const struct panels *all, const struct panel *p, struct why *why)
{
	struct plot_line lines[SCALARS_MEANT_MAX];
	struct plot plot = {.title = p->title, .x_name = "round", .x_unit = 1, .lines = lines};

	for (size_t i = 0; i < p->count; i++) {
		const struct series *s = &all->series[p->first + i];
		if (series_best(s, true) >= 0)
			lines[plot.count++] = (struct plot_line){label_of(s), s->x, s->y, s->count};
	}
	cmd_screen(&plot, (unsigned)all->count);
	return cmd_screen_plot(&plot, why);
}

enum err
cmd_panels(
    struct cmd_admin *a, const struct json *job, const char *metric, uint64_t from, struct why *why)
{
	struct panels p = {.count = 0};

	begin(&p, metric ? metric : "loss");
	if (!metric)
		begin(&p, "accuracy");
	enum err e = cmd_rounds_series(a, job, from, p.series, p.series_count, why);
	for (size_t i = 0; i < p.count && !e; i++) {
		if (i > 0)
			printf("\n");
		e = draw(&p, &p.panels[i], why);
	}
	for (size_t i = 0; i < p.series_count; i++)
		series_deinit(&p.series[i]);
	return e;
}
