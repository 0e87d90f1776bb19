/* The device's INI file. What is accepted must be within the limits that the rest of the agent relies on. */

#include "fuzz.h"
#include "settings.h"

static void
check_data(const struct settings *s, const struct settings_data *d)
{
	require(settings_find_data(s, d->name) == d);
	require(d->source.format < DATA_FORMATS);
	require(d->source.format != DATA_NPY || (d->source.x[0] && d->source.y[0]));
	require(d->source.format != DATA_IDX || (d->source.images[0] && d->source.labels[0]));
	require(d->source.format != DATA_CSV || d->source.path[0]);
	require(d->shard.count >= 1 && d->shard.index >= 1 && d->shard.index <= d->shard.count);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct settings *s = NULL;
	struct why why = {""};
	enum err e = settings_parse(&s, "fuzz.conf", (const char *)data, len, &why);

	require(e == ERR_OK || why.text[0]);
	if (e)
		return 0;
	require(s->url_count <= SETTINGS_URLS_MAX && s->data_count <= SETTINGS_DATA_MAX);
	require(s->trainer_count <= SETTINGS_TRAINERS_MAX);
	require(s->eligibility.battery_min <= 100 && s->eligibility.load_max <= 100);
	require(!s->eligibility.hours.given || settings_has_rules(s));
	for (size_t i = 0; i < s->data_count; i++)
		check_data(s, &s->data[i]);
	for (size_t i = 0; i < s->trainer_count; i++)
		require(settings_find_trainer(s, s->trainers[i].name) == &s->trainers[i] &&
		    s->trainers[i].exec[0]);
	settings_free(s);
	return 0;
}
