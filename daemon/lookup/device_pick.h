#ifndef DEVICE_PICK_H
#define DEVICE_PICK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recipe.h"
#include "states.h"

struct exchange;
struct registry_view;

/* Which devices a list is of, as its query says, and which page. It has no pointers of its own. */
#define DEVICE_PICK_PAGE 1000 /* the most devices of a page */
#define DEVICE_PICK_LABELS 32
/* The words of a query that device_pick_read knows. */
#define DEVICE_PICK_QUERY "limit after where reason state silent_s agent"

struct device_pick {
	uint8_t from[32]; /* the first id that may be on the page */
	bool none; /* there is no id behind `after` */
	uint64_t left; /* how many more may be on the page; UINT64_MAX: no limit */
	double now; /* Unix seconds */
	enum device_state state; /* 0: any */
	bool silent; /* only those not heard of for silent_s seconds, or never */
	uint64_t silent_s;
	char reason[64], agent[64]; /* "": any */
	struct {
		char key[RECIPE_NAME_MAX], value[RECIPE_NAME_MAX];
	} where[DEVICE_PICK_LABELS]; /* a device must have them all */
	size_t where_count;
};

/* Reads the query of x. False: something in it is wrong, and the problem response is set. */
bool device_pick_read(struct exchange *x, struct device_pick *out);
/* Does the list want this device? `left` counts for nothing here. */
bool device_pick_fits(const struct device_pick *p, const struct registry_view *d);

#endif
