#include "fds.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

enum err
fds_send(int to, const void *data, size_t len, const int *fds, size_t n)
{
	union control control = {.room = {0}};
	struct iovec io = {(void *)(size_t)data, len};
	struct msghdr m = {.msg_iov = &io,
	    .msg_iovlen = 1,
	    .msg_control = &control,
	    .msg_controllen = CMSG_SPACE(n * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	if (sendmsg(to, &m, MSG_NOSIGNAL) >= 0)
		return ERR_OK;
	return errno == EPIPE || errno == ECONNRESET ? ERR_CLOSED : ERR_IO;
}

bool
fds_receive(int from, void *data, size_t len, int *fds, size_t n)
{
	union control control;
	struct iovec io = {data, len};
	struct msghdr m = {.msg_iov = &io,
	    .msg_iovlen = 1,
	    .msg_control = &control,
	    .msg_controllen = sizeof(control)};
	ssize_t got;

	do
		got = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	struct cmsghdr *c = got > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	for (size_t i = 0; i < n; i++)
		fds[i] = -1;
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len <= CMSG_LEN(n * sizeof(int)))
		memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	return got > 0;
}

void
fds_close_from(unsigned first, int kept)
{
	if (kept > 0 && (unsigned)kept > first)
		close_range(first, (unsigned)kept - 1, 0);
	if (kept >= 0 && (unsigned)kept >= first)
		first = (unsigned)kept + 1;
	close_range(first, ~0U, 0);
}
