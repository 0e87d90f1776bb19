#ifndef SHOW_FIGURES_H
#define SHOW_FIGURES_H
#include <stdbool.h>

struct json;

/* The figures of the newest of these rounds that has some, as tables; nothing if none has. confusion: the matrix, too. */
void cmd_figures_print(const struct json *rounds, bool confusion);

#endif
