#ifndef ROUTES_H
#define ROUTES_H
#include "route.h"

/* The route for verb and path; fills param. NULL if there is none; then *path_known says whether another verb would do.
 * HEAD matches GET where it has no row of its own. */
const struct route *routes_find(
    enum http_verb verb, const char *path, char param[2][72], bool *path_known);
/* All of it, for the server. */
extern const struct route_table routes;
/* All routes, for the test of the role table. */
const struct route *routes_table(size_t *count);

#endif
