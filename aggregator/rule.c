#include "rule.h"

#include <string.h>

#include "mean.h"

static const struct rule rules[] = {
    {"mean", mean_fold},
};

const struct rule *
rule_find(const char *name)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (strcmp(rules[i].name, name) == 0)
			return &rules[i];
	return NULL;
}
