/* The coordinator's INI file. What is accepted must be within the limits that the rest of the daemon relies on. */

#include "config.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct config c;
	struct why why = {""};
	enum err e = config_parse(&c, "fuzz.conf", (const char *)data, len, &why);

	require(e == ERR_OK || e == ERR_INVALID);
	if (e) {
		require(strncmp(why.text, "fuzz.conf:", 10) == 0);
		return 0;
	}
	require(c.listen_count >= 1 && c.listen_count <= CONFIG_LISTEN_MAX);
	require(c.data_count <= CONFIG_DATA_MAX && c.state_dir[0] && c.connections >= 1);
	require(c.header_bytes >= 2048 && c.keep_last >= 1);
	for (size_t i = 0; i < c.data_count; i++) {
		const struct config_data *d = &c.data[i];
		require(config_data_find(&c, d->name) == d);
		require(
		    d->source.format != DATA_IDX || (d->source.images[0] && d->source.labels[0]));
		require(d->source.format != DATA_CSV || (d->source.path[0] && d->source.label[0]));
	}
	return 0;
}
