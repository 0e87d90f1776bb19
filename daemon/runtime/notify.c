#include "notify.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "num.h"

/* False if path cannot be a socket's. A leading @ stands for the zero byte of an abstract name. */
static bool
address_of(const char *path, struct sockaddr_un *a, socklen_t *len)
{
	size_t n = strlen(path);

	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	if ((path[0] != '/' && path[0] != '@') || n < 2 || n >= sizeof(a->sun_path))
		return false;
	memcpy(a->sun_path, path, n);
	if (path[0] == '@')
		a->sun_path[0] = '\0';
	*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	return true;
}

void
notify_send(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un a;
	socklen_t len;

	if (!path || !address_of(path, &a, &len))
		return;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* Without MSG_DONTWAIT a stuck manager would stop the daemon. */
	sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&a, len);
	close(fd);
}

uint64_t
notify_watchdog_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");
	uint64_t us, who;

	if (!usec || !num_u64(usec, UINT64_MAX, &us) || us == 0)
		return 0;
	/* The variables are inherited; the watchdog of a parent is not ours. */
	if (pid && (!num_u64(pid, INT32_MAX, &who) || who != (uint64_t)getpid()))
		return 0;
	return us < 2000 ? 1 : us / 2000;
}
