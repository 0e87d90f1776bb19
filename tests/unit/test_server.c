/* stages: gcc openssl address thread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "err.h"
#include "file.h"
#include "log.h"
#include "routes.h"
#include "server.h"
#include "services.h"
#include "shared.h"

struct bench {
	char dir[64];
	struct config config, reloaded;
	struct services services;
	struct why why;
};

static int
setup(void **state)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	log_set_level(LOG_LEVEL_ERROR);
	strcpy(b->dir, "/tmp/test_server.XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	config_defaults(&b->config);
	b->config.listen[0] = (struct config_listen){"127.0.0.1", 0};
	b->config.io_threads = 2;
	snprintf(b->config.admin_socket, sizeof(b->config.admin_socket), "%s/admin.sock", b->dir);
	b->services.fixed = &b->config;
	assert_int_equal(shared_new(&b->services.config, &b->config, NULL), ERR_OK);
	*state = b;
	return 0;
}

static int
teardown(void **state)
{
	struct bench *b = *state;

	shared_free(b->services.config);
	assert_int_equal(file_empty_dir(b->dir, &b->why), ERR_OK);
	assert_int_equal(rmdir(b->dir), 0);
	free(b);
	return 0;
}

static struct server *
start(struct bench *b)
{
	struct server *s = NULL;
	enum err e = server_new(&s, &b->services, &routes, &b->why);

	if (e)
		fail_msg("%s: %s", err_name(e), b->why.text);
	return s;
}

/* Does somebody listen there? */
static bool
answers(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "%.100s", path);
	bool ok = connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
	close(fd);
	return ok;
}

static void
the_socket_goes_with_its_server(void **state)
{
	struct bench *b = *state;
	struct server *s = start(b);

	assert_true(answers(b->config.admin_socket));
	server_free(s);
	assert_int_equal(access(b->config.admin_socket, F_OK), -1);
}

/* One that nobody answers on is in the way of nothing. */
static void
a_dead_socket_is_replaced(void **state)
{
	struct bench *b = *state;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%.100s", b->config.admin_socket);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(fd);
	struct server *s = start(b);
	assert_true(answers(b->config.admin_socket));
	server_free(s);
}

static void
a_second_coordinator_leaves_the_first_alone(void **state)
{
	struct bench *b = *state;
	struct server *s = start(b), *other = NULL;

	assert_int_equal(server_new(&other, &b->services, &routes, &b->why), ERR_EXISTS);
	assert_non_null(strstr(b->why.text, "another coordinator answers on"));
	assert_true(answers(b->config.admin_socket));
	server_free(s);
}

/* Of the same user too, who could share it by SO_REUSEPORT. */
static void
a_port_in_use_is_refused(void **state)
{
	struct bench *b = *state;
	struct server *s = start(b), *other = NULL;

	b->config.listen[0].port = server_port(s);
	b->config.admin_socket[0] = '\0';
	assert_int_equal(server_new(&other, &b->services, &routes, &b->why), ERR_IO);
	assert_non_null(strstr(b->why.text, "is in use by another program"));
	server_free(s);
	assert_int_equal(server_new(&other, &b->services, &routes, &b->why), ERR_OK);
	server_free(other);
}

/* After a reload the configuration may name a path that is not this server's. */
static void
the_socket_that_was_bound_is_removed(void **state)
{
	struct bench *b = *state;
	struct server *s = start(b);

	b->reloaded = b->config;
	snprintf(b->reloaded.admin_socket, sizeof(b->reloaded.admin_socket), "%s/other", b->dir);
	FILE *f = fopen(b->reloaded.admin_socket, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(shared_reserve(b->services.config), ERR_OK);
	shared_replace(b->services.config, &b->reloaded);
	server_free(s);
	assert_int_equal(access(b->config.admin_socket, F_OK), -1);
	assert_int_equal(access(b->reloaded.admin_socket, F_OK), 0);
}

static void
a_socket_of_another_stays(void **state)
{
	struct bench *b = *state;
	struct server *first = start(b);

	assert_int_equal(unlink(b->config.admin_socket), 0);
	struct server *second = start(b);
	server_free(first);
	assert_true(answers(b->config.admin_socket));
	server_free(second);
	assert_int_equal(access(b->config.admin_socket, F_OK), -1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(the_socket_goes_with_its_server),
	    TEST(a_dead_socket_is_replaced),
	    TEST(a_second_coordinator_leaves_the_first_alone),
	    TEST(a_port_in_use_is_refused),
	    TEST(the_socket_that_was_bound_is_removed),
	    TEST(a_socket_of_another_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
