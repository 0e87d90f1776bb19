#ifndef TRIAL_H
#define TRIAL_H

/*
 * What `rivuletd --check-config` tries of a configuration that can be read: can its files and directories be used, and its addresses be
 * listened on? Nothing is changed. While a coordinator runs on the same state directory, addresses and socket are not tried.
 */
struct trial {
	const struct config *config;
	const struct ini_notes *notes; /* file and line of each value in config */
	void (*found)(void *context, const char *text); /* called for each finding, with its line */
	void *context;
};

void trial_run(const struct trial *t);

#endif
