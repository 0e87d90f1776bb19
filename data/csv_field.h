#ifndef CSV_FIELD_H
#define CSV_FIELD_H
#include <stdbool.h>

/*
 * The fields of one CSV line, cut up in place. `*at` stands at a field and moves to the next, or becomes NULL
 * after the last. The separator is no quote, blank, digit, sign or point.
 */

/* *text becomes the field's content without blanks and quotes around it. False if its quotes are wrong. */
bool csv_field_cut(char **at, char separator, char **text);
/* Reads the field as the double nearest to its decimal text. NULL, or a constant text saying what is wrong. */
const char *csv_field_number(char **at, char separator, double *out);

#endif
