#include "gate.h"

#include <stddef.h>
#include <string.h>

/* Greedy matching with one place to go back to: the last star. */
static bool
matches(const char *pattern, size_t len, const char *text)
{
	const char *p = pattern, *end = pattern + len, *star = NULL, *back = text;

	while (*text) {
		if (p < end && *p == '*') {
			star = p++;
			back = text;
		} else if (p < end && *p == *text) {
			p++;
			text++;
		} else if (star) {
			p = star + 1;
			text = ++back;
		} else {
			return false;
		}
	}
	while (p < end && *p == '*')
		p++;
	return p == end;
}

static bool
listed(const char *list, const char *job, const char *name)
{
	for (const char *p = list + strspn(list, ", \t"); *p; p += strspn(p, ", \t")) {
		size_t len = strcspn(p, ", \t");
		if (matches(p, len, name) || matches(p, len, job))
			return true;
		p += len;
	}
	return false;
}

bool
gate_used(const struct gate *g)
{
	return *g->allow || *g->deny;
}

bool
gate_admits(const struct gate *g, const char *job, const char *name)
{
	if (listed(g->deny, job, name))
		return false;
	return !*g->allow || listed(g->allow, job, name);
}
