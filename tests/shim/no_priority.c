/*
 * LD_PRELOAD=no_priority.so: asking for another priority does nothing, as in sandboxes that run all threads alike.
 */
#include <sys/resource.h>
#include <unistd.h>

int
setpriority(__priority_which_t which, id_t who, int priority)
{
	(void)which, (void)who, (void)priority;
	return 0;
}

int
nice(int by)
{
	(void)by;
	return 0;
}
