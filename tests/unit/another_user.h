#ifndef ANOTHER_USER_H
#define ANOTHER_USER_H
#include <linux/capability.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Users of tests alone. */
#define ANOTHER_ONE 64101
#define ANOTHER_TWO 64102

/* This process of the superuser becomes that user, with the three rights of user.h as a service manager gives them. */
static bool
another_user_with_rights(unsigned user)
{
	const unsigned rights = 1U << CAP_SETUID | 1U << CAP_SETGID | 1U << CAP_KILL;
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	const struct __user_cap_data_struct held[2] = {
	    {.effective = rights, .permitted = rights, .inheritable = rights}};

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 || setresgid(user, user, user) != 0 ||
	    setresuid(user, user, user) != 0 || syscall(SYS_capset, &head, held) != 0)
		return false;
	for (unsigned long right = 0; right < 32; right++)
		if (rights & 1U << right &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, right, 0, 0) != 0)
			return false;
	return true;
}

#endif
