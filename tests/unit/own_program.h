#ifndef OWN_PROGRAM_H
#define OWN_PROGRAM_H
/* A script of the test's own as the trainer of a trial. */
#include "trial.h"

#define REPORT "{\"examples\":40,\"steps\":4,\"loss\":0.5}"

static struct why why;
static char own_script[64], own_config[128];

#define EXT_JOB \
	"{\"name\":\"t\",\"seed\":1,\"model\":{\"layers\":[{\"type\":\"linear\",\"name\":\"fc\"," \
	"\"out\":2}],\"loss\":\"cross_entropy\"},\"trainer\":\"ext\"," \
	"\"tensors\":{\"fc.bias\":\"local\"}," \
	"\"data\":{\"name\":\"points\",\"shape\":[2],\"classes\":2}," \
	"\"local\":{\"epochs\":1,\"batch\":10,\"optimizer\":{\"name\":\"sgd\",\"rate\":0.1}}," \
	"\"round\":{\"goal\":1}}"
#define LOOK(text) \
	"set -e\n/usr/bin/python3 - <<'E'\n" \
	"import json, struct\n" \
	"t = json.load(open('task.json'))\n" \
	"def read(path):\n" \
	"    b = open(path, 'rb').read()\n" \
	"    n = struct.unpack('<Q', b[:8])[0]\n" \
	"    h = json.loads(b[8:8 + n])\n" \
	"    h.pop('__metadata__')\n" \
	"    return {k: list(struct.unpack('<%df' % ((v['data_offsets'][1] - " \
	"v['data_offsets'][0]) // 4),\n" \
	"        b[8 + n:][v['data_offsets'][0]:v['data_offsets'][1]])) for k, v in " \
	"h.items()}\n" text "E\n"

/* The settings for what run_at runs. */
static inline const char *
own(const char *more)
{
	snprintf(own_script, sizeof(own_script), "/tmp/test_external.%d", (int)getpid());
	snprintf(
	    own_config, sizeof(own_config), "[trainer ext]\nexec=sh %s\n%s\n", own_script, more);
	return own_config;
}

static inline enum err
run_at(struct trial *t, const char *text)
{
	trial_check(file_write(own_script, text, strlen(text), 0600, &why), &why);
	enum err e = trainer_external_run(&t->in, &t->out, &why);
	unlink(own_script);
	if (e)
		print_message("%s\n%s\n", why.text, t->out.log);
	return e;
}

#endif
