#ifndef CSV_FIELD_H
#define CSV_FIELD_H
#include <stdbool.h>

/*
 * The fields of one CSV line, cut up in place. `*at` stands at a field and moves to the next, or becomes NULL
 * after the last. The separator is no quote, space, digit, sign or point.
 */

/* *text becomes the field's content without blanks and quotes around it; a tab is a blank unless it separates. False if its quotes are
 * wrong. */
bool csv_field_cut(char **at, char separator, char **text);
/* The field as the double nearest to its decimal text; false if it is no finite decimal number. */
bool csv_field_number(const char *field, double *out);

#endif
