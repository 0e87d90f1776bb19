#ifndef SANDBOX_H
#define SANDBOX_H
#include <stdbool.h>

#include "err.h"

/*
 * What a program that runs beside its user's secrets may still ask of the kernel: seccomp filters (Linux 3.17 and later;
 * docs.kernel.org/userspace-api/seccomp_filter.html). They take what a Landlock domain (confine.h) does not decide: modes, owners,
 * dates and attributes by path; priority, processors and limits of other processes; calls that pass by every filter, that keep
 * memory beyond their process, or that programs do without. docs/devices.md has the list for people.
 *
 * They hold for the calling thread and all that is started from it later, and cannot be left. Of the capabilities of a superuser
 * those stay that let it use files and become somebody else.
 */
struct sandbox_options {
	bool
	    memory_counted; /* memory without a process is counted by a control group: memfd_create stays */
	bool truncate_decided; /* Landlock decides about truncate by path (version 3): it stays */
};

/* Has the kernel seccomp filters? */
bool sandbox_works(void);
/* From here on; also gives up to gain rights by set-user-ID programs. ERR_UNSUPPORTED without filters in the kernel, ERR_NOMEM. */
ERR_MUST_USE enum err sandbox_enter(const struct sandbox_options *o, struct why *why);

#endif
