#ifndef DOCTOR_H
#define DOCTOR_H
#include "credentials.h"

/*
 * `rivulet doctor`: findings about a device, in words. The command only looks: nothing is renewed, sent or repaired, and an agent may
 * run meanwhile. Each check adds its findings; the command prints them and turns the worst into an exit code.
 */
#define CMD_DOCTOR_FINDINGS_MAX 128

enum cmd_doctor_level {
	CMD_DOCTOR_FINE,
	CMD_DOCTOR_NOTE, /* worth knowing; nothing to do */
	CMD_DOCTOR_WARNING, /* will be a fault if nobody acts */
	CMD_DOCTOR_FAULT, /* keeps this device from its work */
};

struct cmd_doctor_finding {
	enum cmd_doctor_level level;
	int code; /* of enum cmd_exit; 0 for the first two levels */
	char check[16]; /* which check: home, key, certificate, clock, dns, tcp, tls, ... */
	char text[320];
	char advice[256]; /* what a person can do; "" if nothing */
};

struct cmd_doctor {
	char home[PATH_MAX];
	const char *config;
	struct identity identity; /* valid if joined */
	bool joined;
	struct credentials held; /* valid if usable */
	bool usable;
	struct settings *settings; /* NULL if the settings do not load */
	int64_t offset; /* the coordinator's clock minus this machine's, seconds */
	bool offset_known;
	struct cmd_doctor_finding findings[CMD_DOCTOR_FINDINGS_MAX];
	size_t count;
};

void cmd_doctor_add(struct cmd_doctor *d, const char *check, enum cmd_doctor_level level, int code,
    const char *advice, const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* "3 days", "5 hours", "20 seconds". */
void cmd_doctor_span(char out[32], double seconds);

/* Home, lock, identity files. Sets joined and usable. */
void cmd_doctor_home_check(struct cmd_doctor *d);
/* Each address: DNS, TCP, TLS, what the coordinator says of this device, the clocks; the mirror. */
void cmd_doctor_net_check(struct cmd_doctor *d);
/* The dates of certificate and CA, by the coordinator's clock if that is known. */
void cmd_doctor_certificate_check(struct cmd_doctor *d);
/* The owner's rules, and what the sensors say. Needs settings. */
void cmd_doctor_rules_check(struct cmd_doctor *d);
/* Settings, data sets, trainers, disk space, outbox, what the agent last waited for. */
void cmd_doctor_work_check(struct cmd_doctor *d);

#endif
