#ifndef SCREEN_H
#define SCREEN_H
#include "plot.h"

/* What standard output can show: its width (the terminal's, else COLUMNS, else 80), and Braille in colours where it is a terminal that
 * has them (not under NO_COLOR, TERM=dumb or a locale without UTF-8); else characters of ASCII. Fills columns, rows and style of *p. */
void cmd_screen(struct plot *p, unsigned panels);
/* Prints it. */
ERR_MUST_USE enum err cmd_screen_plot(const struct plot *p, struct why *why);

#endif
