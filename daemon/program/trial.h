#ifndef TRIAL_H
#define TRIAL_H

/*
 * What `rivuletd --check-config` tries of a configuration that can be read: do its files and directories serve, can its addresses be
 * listened on? It changes nothing. Beside a running coordinator of the same state directory addresses and socket are not tried.
 */
struct trial {
	const struct config *config;
	const struct ini_notes *notes; /* with the places of its values */
	void (*found)(void *context, const char *text); /* told of each finding, with its place */
	void *context;
};

void trial_run(const struct trial *t);

#endif
