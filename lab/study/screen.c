#include "screen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "num.h"

#define COLUMNS_DEFAULT 80
#define ROWS_LOW 2 /* of an interval, where the terminal is low; else */
#define ROWS_HIGH 3
#define PANEL_ROWS (PLOT_INTERVALS * ROWS_HIGH + 5) /* with its title and axis */
#define TEXT_MAX (4u << 20)

static bool
utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);
		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

static bool
colours(void)
{
	const char *term = getenv("TERM"), *none = getenv("NO_COLOR");

	return isatty(1) && term && strcmp(term, "dumb") != 0 && !(none && *none) && utf8();
}

void
cmd_screen(struct plot *p, unsigned panels)
{
	struct winsize size = {.ws_col = 0};
	const char *columns = getenv("COLUMNS");
	uint64_t n;

	p->columns = COLUMNS_DEFAULT;
	p->rows = ROWS_HIGH;
	p->style = colours() ? PLOT_BRAILLE : PLOT_ASCII;
	if (isatty(1) && ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
		p->columns = size.ws_col;
		p->rows = size.ws_row < panels * PANEL_ROWS ? ROWS_LOW : ROWS_HIGH;
	} else if (columns && num_u64(columns, PLOT_COLUMNS_MAX, &n)) {
		p->columns = (unsigned)n;
	}
}

enum err
cmd_screen_plot(const struct plot *p, struct why *why)
{
	struct buf text;

	buf_init(&text, TEXT_MAX);
	enum err e = plot_draw(&text, p);
	if (e)
		err_set(why, e, "the plot cannot be drawn: %s", err_name(e));
	else
		fwrite(buf_str(&text), 1, text.len, stdout);
	buf_deinit(&text);
	return e;
}
