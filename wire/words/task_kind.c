#include "task_kind.h"

#include "words.h"

static const char *const names[] = {
    [TASK_TRAIN] = "train",
    [TASK_EVALUATE] = "evaluate",
    [TASK_UNKNOWN] = "",
};

const char *
task_kind_name(enum task_kind k)
{
	return names[k];
}

enum task_kind
task_kind_find(const char *name)
{
	return (enum task_kind)words_find(names, TASK_UNKNOWN, name);
}
