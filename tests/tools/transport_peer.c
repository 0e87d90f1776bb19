/*
 * The client's own transport, request by request over one handle, for tests of what a kept connection does after an answer
 * that came before the body was read.
 *
 *   transport_peer HOME URL TASK MANIFEST BODY [OTHER_MANIFEST]
 *        MANIFEST and OTHER_MANIFEST are files with a Rivulet-Manifest value, BODY a file with a body. Sends, in this order
 *        and each followed by GET /v1/status: the delta, the delta again, the body under OTHER_MANIFEST if given, the delta
 *        again. Prints "PUT STATUS SHA-256-OF-THE-ANSWER" and "GET STATUS" lines.
 * Exit status 0 if every request was answered, 2 otherwise.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"
#include "hash.h"
#include "hex.h"
#include "transport.h"

#define PEM_MAX 65536

static const char *home;
static char *texts[8]; /* read so far; freed at the end */
static size_t text_count;

static _Noreturn void
die(const char *what, const char *why)
{
	fprintf(stderr, "transport_peer: %s: %s\n", what, why);
	exit(2);
}

static char *
read_text(const char *path)
{
	char *text = NULL;
	size_t len = 0;
	struct why why = {""};

	if (file_read(path, PEM_MAX, &text, &len, &why) != ERR_OK)
		die(path, why.text);
	texts[text_count++] = text;
	return text;
}

static char *
read_home(const char *name)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s", home, name);
	return read_text(path);
}

static void
show(const char *method, const struct transport_answer *a, bool with_hash)
{
	uint8_t digest[HASH_LEN];
	char hex[2 * HASH_LEN + 1] = "";

	hash_sha256(digest, buf_str(&a->body), a->body.len);
	if (with_hash)
		hex_encode(hex, digest, sizeof(digest));
	printf("%s %ld%s%s\n", method, a->status, with_hash ? " " : "", hex);
}

static void
get_status(struct transport *t, const char *url)
{
	struct transport_answer a;
	struct why why = {""};
	char text[512];

	snprintf(text, sizeof(text), "%s/v1/status", url);
	const struct transport_request q = {.method = "GET", .url = text};
	if (transport_do(t, &q, &a, &why) != ERR_OK)
		die("GET", why.text);
	show("GET", &a, false);
	transport_answer_deinit(&a);
}

static void
put(struct transport *t, const char *url, const char *task, const char *manifest, const char *body)
{
	struct transport_answer a;
	struct why why = {""};
	struct stat st;
	char path[512], header[1024];
	const char *headers[] = {header, NULL};
	int fd = open(body, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) != 0)
		die(body, "cannot be opened");
	snprintf(path, sizeof(path), "%s/v1/deltas/%s", url, task);
	snprintf(header, sizeof(header), "Rivulet-Manifest: %s", manifest);
	const struct transport_request q = {.method = "PUT",
	    .url = path,
	    .headers = headers,
	    .body_fd = fd,
	    .body_bytes = (uint64_t)st.st_size};
	if (transport_do(t, &q, &a, &why) != ERR_OK)
		die("PUT", why.text);
	show("PUT", &a, true);
	transport_answer_deinit(&a);
	close(fd);
}

int
main(int argc, char **argv)
{
	struct transport *t = NULL;
	struct why why = {""};

	if (argc != 6 && argc != 7) {
		fprintf(
		    stderr, "usage: transport_peer HOME URL TASK MANIFEST BODY [OTHER_MANIFEST]\n");
		return 2;
	}
	home = argv[1];
	const struct transport_options options = {.ca_pem = read_home("ca.pem"),
	    .cert_pem = read_home("cert.pem"),
	    .key_pem = read_home("key.pem")};
	const char *manifest = read_text(argv[4]);
	const char *manifests[] = {
	    manifest, manifest, argc == 7 ? read_text(argv[6]) : manifest, manifest};
	if (transport_new(&t, &options, &why) != ERR_OK)
		die("transport", why.text);
	for (size_t i = 0; i < sizeof(manifests) / sizeof(*manifests); i++) {
		put(t, argv[2], argv[3], manifests[i], argv[5]);
		get_status(t, argv[2]);
	}
	transport_free(t);
	while (text_count > 0)
		free(texts[--text_count]);
	return 0;
}
