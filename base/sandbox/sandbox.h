#ifndef SANDBOX_H
#define SANDBOX_H
#include <stdbool.h>

#include "err.h"

/*
 * What a program that runs beside its user's secrets may still ask of the kernel: seccomp filters (Linux 3.17 and later;
 * docs.kernel.org/userspace-api/seccomp_filter.html). The filters refuse what a Landlock domain (confine.h) does not decide: modes, owners,
 * dates and attributes by path; priority, processors and limits of other processes; calls that pass by every filter, that keep
 * memory beyond their process, or that programs do without. docs/devices.md has the list for people.
 *
 * The filters hold for the calling thread and for every thread and process that it starts later, and cannot be removed. Of a superuser's
 * capabilities those stay that let a process use files and become another user.
 */
struct sandbox_options {
	/* A control group counts memory that belongs to no process: memfd_create stays allowed. */
	bool memory_counted;
	/* Landlock (version 3) decides about truncate by path: truncate stays allowed. */
	bool truncate_decided;
};

/* Has the kernel seccomp filters? */
bool sandbox_works(void);
/* Installs the filters, for good; programs started later can no longer gain rights by set-user-ID. ERR_UNSUPPORTED if the kernel has no
 * seccomp filters, ERR_NOMEM. */
ERR_MUST_USE enum err sandbox_enter(const struct sandbox_options *o, struct why *why);

#endif
