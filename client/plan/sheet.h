#ifndef SHEET_H
#define SHEET_H
#include "estimate.h"

/* A plan as JSON (keys in docs/simulate.md), and that as text. The caller frees it. */
struct json *plan_sheet(const struct plan_estimate *e);
/* The part of it that is of one device. */
struct json *plan_sheet_footprint(const struct plan_footprint *f);
void plan_sheet_print(const struct json *sheet);
void plan_sheet_print_footprint(const struct json *footprint);

#endif
