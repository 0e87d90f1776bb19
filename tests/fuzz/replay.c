/* Feeds every file of a corpus directory to a fuzz target, without a fuzzer. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/flush.h"
#include "file.h"
#include "fuzz.h"

/* Runs one input that ends flush against an unreadable page, so that reading past it crashes. */
static void
run_flush(const char *data, size_t len)
{
	struct flush f = flush_new(data, len);

	LLVMFuzzerTestOneInput((const uint8_t *)f.data, len);
	flush_free(&f);
}

int
main(int argc, char **argv)
{
	DIR *d = argc == 2 ? opendir(argv[1]) : NULL;
	struct dirent *ent;
	unsigned files = 0;
	char path[4096];

	if (!d) {
		fprintf(stderr, "usage: %s CORPUS_DIRECTORY\n", argv[0]);
		return 2;
	}
	run_flush("", 0);
	while ((ent = readdir(d))) {
		char *data;
		size_t len;
		if (ent->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], ent->d_name);
		struct why why = {""};
		if (file_read(path, 1 << 24, &data, &len, &why)) {
			fprintf(stderr, "%s\n", why.text);
			return 1;
		}
		run_flush(data, len);
		free(data);
		files++;
	}
	closedir(d);
	printf("%u inputs\n", files);
	return files > 0 ? 0 : 1;
}
