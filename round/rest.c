#include "rest.h"

#define OFTEN 3 /* times a fair share */

uint64_t
rest_rounds(uint64_t devices, uint32_t goal)
{
	const uint64_t turns = devices / ((uint64_t)OFTEN * goal);

	return turns > 0 ? turns - 1 : 0;
}
