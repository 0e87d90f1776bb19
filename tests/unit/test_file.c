/* stages: gcc openssl address */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

static char dir[] = "/tmp/rivulet-test-file-XXXXXX";

/* Each test works in the fresh directory. */
static int
enter(void **state)
{
	(void)state;
	return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int
leave(void **state)
{
	char command[PATH_MAX];
	(void)state;

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static unsigned
entries(const char *path)
{
	unsigned n = 0;
	DIR *d = opendir(path);

	assert_non_null(d);
	for (struct dirent *ent; (ent = readdir(d));)
		n += ent->d_name[0] != '.';
	closedir(d);
	return n;
}

static void
reads_within_the_limit(void **state)
{
	char *data = NULL;
	size_t len = 99;
	struct why why = {""};
	(void)state;

	assert_int_equal(file_write("five", "a\0b\nc", 5, 0644, &why), ERR_OK);
	assert_int_equal(file_read("five", 5, &data, &len, &why), ERR_OK);
	assert_int_equal(len, 5);
	assert_memory_equal(data, "a\0b\nc", 6);
	free(data);
	data = NULL;
	assert_int_equal(file_read("five", 4, &data, &len, &why), ERR_LIMIT);
	assert_non_null(strstr(why.text, "five"));
	assert_null(data);
	assert_int_equal(file_write("none", "", 0, 0644, &why), ERR_OK);
	assert_int_equal(file_read("none", 0, &data, &len, &why), ERR_OK);
	assert_int_equal(len, 0);
	assert_string_equal(data, "");
	free(data);
}

static void
reads_only_regular_files(void **state)
{
	char *data;
	size_t len;
	struct why why = {""};
	(void)state;

	assert_int_equal(file_read("absent", 10, &data, &len, &why), ERR_NOTFOUND);
	assert_non_null(strstr(why.text, "absent"));
	assert_int_equal(file_read("absent", 10, &data, &len, NULL), ERR_NOTFOUND);
	assert_int_equal(file_read(".", 1 << 20, &data, &len, &why), ERR_INVALID);
	assert_int_equal(file_read("/dev/zero", 1 << 20, &data, &len, &why), ERR_INVALID);
	/* A FIFO without a writer must not block. */
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(file_read("fifo", 10, &data, &len, &why), ERR_INVALID);
	assert_int_equal(unlink("fifo"), 0);
}

static void
maps_within_the_limit(void **state)
{
	struct file_map map = {0};
	struct why why = {""};
	(void)state;

	assert_int_equal(file_write("five", "a\0b\nc", 5, 0644, &why), ERR_OK);
	for (int ahead = 0; ahead < 2; ahead++) {
		assert_int_equal(file_map(&map, "five", 5, ahead, &why), ERR_OK);
		assert_int_equal(map.len, 5);
		assert_memory_equal(map.data, "a\0b\nc", 5);
		file_unmap(&map);
		assert_null(map.data);
		file_unmap(&map);
	}
	assert_int_equal(file_map(&map, "five", 4, false, &why), ERR_LIMIT);
	assert_string_equal(why.text, "five is larger than 4 bytes");
	assert_int_equal(file_write("none", "", 0, 0644, &why), ERR_OK);
	assert_int_equal(file_map(&map, "none", 4, false, &why), ERR_INVALID);
	assert_string_equal(why.text, "none is empty");
	assert_null(map.data);
}

static void
maps_only_regular_files(void **state)
{
	static const struct {
		const char *path;
		enum err e;
		const char *why;
	} cases[] = {
	    {"absent", ERR_NOTFOUND, "open absent: No such file or directory"},
	    {".", ERR_INVALID, ". is not a regular file"},
	    {"fifo", ERR_INVALID, "fifo is not a regular file"},
	    {"zeros", ERR_INVALID, "zeros is not a regular file"},
	};
	struct file_map map = {0};
	struct why why;
	(void)state;

	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(symlink("/dev/zero", "zeros"), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(file_map(&map, cases[i].path, 1 << 20, false, &why), cases[i].e);
		assert_string_equal(why.text, cases[i].why);
		assert_null(map.data);
	}
	assert_int_equal(unlink("fifo") || unlink("zeros"), 0);
}

static void
writes_mode_and_content(void **state)
{
	const mode_t modes[] = {0600, 0644, 0640, 0400};
	struct stat st;
	struct why why = {""};
	mode_t old = umask(077);
	(void)state;

	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(file_write("mode", "xyz!", i, modes[i], &why), ERR_OK);
		assert_int_equal(stat("mode", &st), 0);
		assert_int_equal(st.st_mode & 07777, modes[i]);
		assert_int_equal(st.st_size, i);
	}
	umask(old);
	assert_int_equal(file_write("mode", "new", 3, 0600, NULL), ERR_OK);
	assert_int_equal(stat("mode", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, 3);
}

/* A reader that opened the old version keeps it: the new one has another inode. */
static void
replaces_as_a_whole(void **state)
{
	char text[4] = "";
	struct why why = {""};
	(void)state;

	assert_int_equal(file_write("whole", "old", 3, 0644, &why), ERR_OK);
	int fd = open("whole", O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(file_write("whole", "newer", 5, 0644, &why), ERR_OK);
	assert_int_equal(file_pread(fd, text, 3, 0), ERR_OK);
	assert_string_equal(text, "old");
	assert_int_equal(file_pread(fd, text, 4, 0), ERR_CORRUPT);
	close(fd);
}

/* A write that cannot finish leaves the old file and no temporary one. */
static void
failed_write_leaves_nothing(void **state)
{
	const struct rlimit small = {4096, RLIM_INFINITY};
	struct rlimit before;
	char *big = test_calloc(1, 10000), *data;
	size_t len;
	struct why why = {""};
	(void)state;

	assert_int_equal(mkdir("full", 0755), 0);
	assert_int_equal(file_write("full/f", "old", 3, 0644, &why), ERR_OK);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	enum err e = file_write("full/f", big, 10000, 0644, &why);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(e, ERR_IO);
	assert_non_null(strstr(why.text, "write full/f"));
	assert_non_null(strstr(why.text, strerror(EFBIG)));
	assert_int_equal(entries("full"), 1);
	assert_int_equal(file_read("full/f", 10, &data, &len, &why), ERR_OK);
	assert_string_equal(data, "old");
	free(data);
	test_free(big);
	/* A directory stands where the file should go. */
	assert_int_equal(mkdir("full/d", 0755), 0);
	assert_int_equal(file_write("full/d", "x", 1, 0644, &why), ERR_IO);
	assert_non_null(strstr(why.text, "rename"));
	assert_int_equal(entries("full"), 2);
}

static void
write_errors_name_the_step(void **state)
{
	char longer[PATH_MAX + 10];
	struct why why = {""};
	(void)state;

	assert_int_equal(file_write("no/such/dir", "x", 1, 0644, &why), ERR_NOTFOUND);
	assert_non_null(strstr(why.text, "create no/such/dir"));
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(file_write(longer, "x", 1, 0644, &why), ERR_LIMIT);
	assert_int_equal(file_sync_dir("no/such/dir", &why), ERR_NOTFOUND);
	assert_int_equal(file_sync_dir(".", &why), ERR_OK);
	if (access("/dev/full", W_OK) == 0) {
		int fd = open("/dev/full", O_WRONLY);
		assert_int_equal(file_pwrite(fd, "x", 1, 0), ERR_NOSPACE);
		close(fd);
	}
}

static void
commits_a_streamed_file(void **state)
{
	char *data;
	size_t len;
	struct why why = {""};
	int fd = open("part", O_RDWR | O_CREAT | O_TRUNC, 0600);
	(void)state;

	assert_true(fd >= 0);
	assert_int_equal(file_pwrite(fd, "world", 5, 5), ERR_OK);
	assert_int_equal(file_pwrite(fd, "hello", 5, 0), ERR_OK);
	assert_int_equal(file_pwrite(fd, "", 0, 100), ERR_OK);
	assert_int_equal(file_commit(fd, "part", "done", &why), ERR_OK);
	assert_int_equal(access("part", F_OK), -1);
	assert_int_equal(file_read("done", 10, &data, &len, &why), ERR_OK);
	assert_string_equal(data, "helloworld");
	free(data);
	assert_int_equal(file_commit(fd, "part", "done", &why), ERR_NOTFOUND);
	assert_int_equal(close(fd), 0);
	assert_int_equal(file_commit(-1, "done", "other", &why), ERR_IO);
	/* What is no file is not replaced by one, nor is a link to what the process has open. */
	assert_int_equal(mkfifo("pipe", 0600), 0);
	assert_int_equal(file_rename("done", "pipe", &why), ERR_INVALID);
	assert_string_equal(why.text, "pipe is no regular file");
	assert_int_equal(file_write("pipe", "x", 1, 0600, &why), ERR_INVALID);
	assert_int_equal(symlink("/proc/self/exe", "open"), 0);
	assert_int_equal(file_rename("done", "open", &why), ERR_INVALID);
	assert_int_equal(symlink("done", "link"), 0);
	assert_int_equal(file_write("link", "x", 1, 0600, &why), ERR_OK);
	assert_int_equal(unlink("pipe") + unlink("open") + unlink("link"), 0);
	assert_int_equal(access("done", F_OK), 0);
}

static void
exact_transfers(void **state)
{
	char data[8];
	int fd = open("exact", O_RDWR | O_CREAT | O_TRUNC, 0600);
	(void)state;

	assert_true(fd >= 0);
	assert_int_equal(file_pwrite(fd, "abcdef", 6, 0), ERR_OK);
	assert_int_equal(file_pread(fd, data, 3, 3), ERR_OK);
	assert_memory_equal(data, "def", 3);
	assert_int_equal(file_pread(fd, data, 4, 3), ERR_CORRUPT);
	assert_int_equal(file_pread(fd, data, 0, 999), ERR_OK);
	assert_int_equal(file_pread(fd, data, 1, UINT64_MAX), ERR_IO);
	close(fd);
	assert_int_equal(file_pread(fd, data, 1, 0), ERR_IO);
}

static void
copies(void **state)
{
	static const size_t sizes[] = {0, 1, 700001};
	char *data = malloc(700001), *back = NULL;
	size_t len = 0;
	struct why why;

	(void)state;
	assert_non_null(data);
	for (size_t i = 0; i < 700001; i++)
		data[i] = (char)(i % 251);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		assert_int_equal(file_write("from", data, sizes[i], 0644, &why), ERR_OK);
		assert_int_equal(file_write("to", "longer than one", 15, 0644, &why), ERR_OK);
		assert_int_equal(file_copy("from", "to", 0600, &why), ERR_OK);
		assert_int_equal(file_read("to", 1 << 20, &back, &len, &why), ERR_OK);
		assert_int_equal(len, sizes[i]);
		assert_memory_equal(back, data, len);
		free(back);
	}
	assert_int_equal(file_copy("absent", "to", 0600, &why), ERR_NOTFOUND);
	assert_string_equal(why.text, "copy absent to to: No such file or directory");
	assert_int_equal(file_copy("from", "no/such/dir", 0600, &why), ERR_NOTFOUND);
	assert_int_not_equal(file_copy("/", "to", 0600, &why), ERR_OK);
	free(data);
}

static void
makes_directories(void **state)
{
	struct stat st;
	struct why why = {""};
	(void)state;

	assert_int_equal(file_mkdirs("a/b/c", 0700, &why), ERR_OK);
	assert_int_equal(file_mkdirs("a/b/c", 0700, &why), ERR_OK);
	assert_int_equal(file_mkdirs("a/b/c/d/", 0700, &why), ERR_OK);
	assert_int_equal(stat("a/b/c/d", &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(file_mkdirs("/", 0700, &why), ERR_OK);
	assert_int_equal(file_mkdirs("", 0700, &why), ERR_INVALID);
	assert_int_equal(file_write("plain", "x", 1, 0600, &why), ERR_OK);
	assert_int_equal(file_mkdirs("plain", 0700, &why), ERR_INVALID);
	assert_int_not_equal(file_mkdirs("plain/x", 0700, &why), ERR_OK);
	assert_int_equal(file_mkdirs("/proc/nope/x", 0700, &why), ERR_NOTFOUND);
	assert_non_null(strstr(why.text, "/proc/nope"));
}

static void
empties_a_directory(void **state)
{
	struct why why = {""};
	(void)state;

	assert_int_equal(file_empty_dir("not-there", &why), ERR_OK);
	assert_int_equal(file_mkdirs("spool/keep", 0700, &why), ERR_OK);
	assert_int_equal(file_write("spool/keep/inner", "x", 1, 0600, &why), ERR_OK);
	assert_int_equal(file_write("spool/one", "x", 1, 0600, &why), ERR_OK);
	assert_int_equal(file_write("spool/.two", "x", 1, 0600, &why), ERR_OK);
	assert_int_equal(symlink("../plain", "spool/link"), 0);
	assert_int_equal(file_empty_dir("spool", &why), ERR_OK);
	assert_int_equal(entries("spool"), 1);
	assert_int_equal(access("spool/.two", F_OK), -1);
	assert_int_equal(access("spool/keep/inner", F_OK), 0);
	assert_int_equal(file_write("here", "x", 1, 0600, &why), ERR_OK);
	assert_int_equal(file_empty_dir("here", &why), ERR_IO);
}

static void
removes_a_directory(void **state)
{
	struct why why = {""};
	(void)state;

	assert_int_equal(file_remove_dir("not-there", &why), ERR_OK);
	assert_int_equal(file_mkdirs("tree/deep/deeper", 0700, &why), ERR_OK);
	assert_int_equal(file_write("tree/deep/file", "x", 1, 0600, &why), ERR_OK);
	assert_int_equal(file_mkdirs("beside", 0700, &why), ERR_OK);
	assert_int_equal(file_write("beside/file", "x", 1, 0600, &why), ERR_OK);
	assert_int_equal(symlink("../../beside", "tree/deep/link"), 0);
	assert_int_equal(file_remove_dir("tree", &why), ERR_OK);
	assert_int_not_equal(access("tree", F_OK), 0);
	assert_int_equal(access("beside/file", F_OK), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(reads_within_the_limit),
	    cmocka_unit_test(reads_only_regular_files),
	    cmocka_unit_test(maps_within_the_limit),
	    cmocka_unit_test(maps_only_regular_files),
	    cmocka_unit_test(writes_mode_and_content),
	    cmocka_unit_test(replaces_as_a_whole),
	    cmocka_unit_test(failed_write_leaves_nothing),
	    cmocka_unit_test(write_errors_name_the_step),
	    cmocka_unit_test(commits_a_streamed_file),
	    cmocka_unit_test(exact_transfers),
	    cmocka_unit_test(copies),
	    cmocka_unit_test(makes_directories),
	    cmocka_unit_test(empties_a_directory),
	    cmocka_unit_test(removes_a_directory),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
