#include "machine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "clock.h"
#include "file.h"
#include "hash.h"
#include "hex.h"

#define LABEL "rivulet machine 1\n"
#define ID_MAX 256

void
machine_id(char out[MACHINE_HEX])
{
	const char *path = getenv("RIVULET_MACHINE_ID_FILE");
	char whole[sizeof(LABEL) + ID_MAX] = LABEL;
	char *text = NULL;
	uint8_t digest[HASH_LEN];
	size_t len;

	out[0] = '\0';
	if (file_read(path && *path ? path : MACHINE_ID_FILE, ID_MAX, &text, &len, NULL))
		return;
	len = strcspn(text, "\n");
	if (len > 0) {
		memcpy(whole + strlen(LABEL), text, len);
		hash_sha256(digest, whole, strlen(LABEL) + len);
		hex_encode(out, digest, sizeof(digest));
	}
	free(text);
}

bool
machine_disk_free(const char *path, uint64_t *bytes)
{
	struct statvfs st;

	if (statvfs(path, &st) != 0)
		return false;
	*bytes = (uint64_t)st.f_bavail * st.f_frsize;
	return true;
}

uint64_t
machine_time_ms(void)
{
	double now = clock_wall();

	return now < 0 ? 0 : (uint64_t)(now * 1000 + 0.5);
}
