#ifndef SCREEN_H
#define SCREEN_H
#include "plot.h"

/* Fills columns, rows and style of *p as standard output can show them: the width of the terminal, else COLUMNS, else 80; Braille in
 * colours on a terminal that has both (not with NO_COLOR, TERM=dumb or a locale without UTF-8), else ASCII. */
void cmd_screen(struct plot *p, unsigned panels);
/* Prints a plot on standard output. */
ERR_MUST_USE enum err cmd_screen_plot(const struct plot *p, struct why *why);

#endif
