#include "fuzz.h"
#include "tfevents.h"

/* An event file that is there already: what is said to be whole records reads as such again. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct tfevents_past past, again;

	if (tfevents_read(&past, data, len, NULL))
		return 0;
	require(past.bytes <= len && (past.steps || past.last == 0));
	require(tfevents_read(&again, data, (size_t)past.bytes, NULL) == ERR_OK);
	require(
	    again.bytes == past.bytes && again.records == past.records && again.last == past.last);
	return 0;
}
