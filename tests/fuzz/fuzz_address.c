/* Addresses of coordinators and mirrors as people write them. What is accepted is one form: normalised again, it stays. */

#include "address.h"
#include "fuzz.h"

static void
check_form(const char *text)
{
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f)
			abort();
	const char *host = strstr(text, "://") + 3;
	if (memchr(host, '@', strcspn(host, "/")) || strlen(text) >= ADDRESS_MAX)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char out[ADDRESS_MAX], again[ADDRESS_MAX];
	struct why why;
	char *text = fuzz_string(data, len);

	if (address_normalise(out, text, &why) == ERR_OK) {
		check_form(out);
		if (strncmp(out, "https://", 8) != 0 || strchr(out + 8, '/') ||
		    address_normalise(again, out, &why) || strcmp(out, again) != 0)
			abort();
	}
	if (address_mirror(out, text, &why) == ERR_OK) {
		check_form(out);
		if (address_mirror(again, out, &why) || strcmp(out, again) != 0)
			abort();
	}
	free(text);
	return 0;
}
