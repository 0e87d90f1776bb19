#ifndef SHOW_FIGURES_H
#define SHOW_FIGURES_H
#include <stdbool.h>

struct json;

/* Prints the figures of the newest round that has figures, as tables; nothing if no round has. confusion: prints the matrix, too. */
void cmd_figures_print(const struct json *rounds, bool confusion);

#endif
