#include "program_site.h"

#include <stdio.h>

#include "num.h"

void
program_say(const char *reason)
{
	fprintf(stderr, "rivulet-site: %s\n", reason);
}

int
program_fail(enum err e, const struct why *why)
{
	program_say(*why->text ? why->text : err_name(e));
	return e == ERR_INVALID ? PROGRAM_USAGE : PROGRAM_FAILED;
}

bool
program_options(struct option_words *words, const struct option_entry *table,
    const struct option_usage *usage, int argc, char **argv, int *rc)
{
	struct buf text;

	buf_init(&text, OPTION_TEXT_MAX);
	enum option_answer answer =
	    option_take(words, "rivulet-site", table, usage, argc, argv, &text);
	fputs(buf_str(&text), answer == OPTION_WRONG ? stderr : stdout);
	buf_deinit(&text);
	*rc = answer == OPTION_SHOW ? PROGRAM_OK : PROGRAM_USAGE;
	return answer == OPTION_GO;
}

static enum err
read_number(const char *name, const char *text, unsigned *out, struct why *why)
{
	uint64_t n = 0;

	if (text && (!num_u64(text, LINK_RANKS_MAX, &n) || n == 0))
		return err_set(
		    why, ERR_INVALID, "--%s wants a number from 1 to %d", name, LINK_RANKS_MAX);
	*out = (unsigned)n;
	return ERR_OK;
}

enum err
program_shape_read(struct program_shape *s, struct why *why)
{
	struct {
		const char *name, *text;
		unsigned *to;
	} all[] = {{"ranks", s->ranks, &s->site.ranks},
	    {"pipeline-parallel", s->pipeline, &s->site.pipeline},
	    {"data-parallel", s->replicas, &s->site.replicas},
	    {"threads", s->threads, &s->site.threads}};
	size_t options = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		enum err e = read_number(all[i].name, all[i].text, all[i].to, why);
		if (e)
			return e;
		if (!all[i].text)
			continue;
		snprintf(
		    s->texts[options], sizeof(s->texts[0]), "--%s=%u", all[i].name, *all[i].to);
		s->options[options] = s->texts[options];
		options++;
	}
	s->options[options] = NULL;
	unsigned p = s->site.pipeline ? s->site.pipeline : 1,
		 r = s->site.replicas ? s->site.replicas : 1;
	return p * r <= s->site.ranks
	    ? ERR_OK
	    : err_set(why, ERR_INVALID, "%u stages x %u replicas are more than %u ranks", p, r,
		  s->site.ranks);
}
