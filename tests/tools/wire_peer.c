/*
 * A device that does wrong, one thing at a time, for tests of what the coordinator refuses.
 *
 *   wire_peer ask HOME PORT                                prints "TASK JOB ROUND BASE" of the task it was given;
 *        WIRE_DATA names the data set that it offers, for "digits"
 *   wire_peer put HOME PORT ELEMENTS MODE FAULT TASK JOB ROUND BASE
 *        sends a delta of ELEMENTS f32 (sparse:ELEMENTS: of the codec sparse, the first one alone) with one fault (see the table;
 *        "none" is a good one) and prints
 *        "STATUS WORD BODY_BYTES_SENT END": the word ends the problem's type, or is "receipt"; END is open, closed, reset.
 *        MODE: wait     Expect: 100-continue; the body goes when it is asked for, and stops when an answer comes
 *              rush     head and body at once, without looking
 *              cut      half of the body, then the connection is gone
 *              twice    rush, on two connections that both end their body when the other has sent all but one byte
 *              save:DIR nothing is sent: DIR gets manifest (the header's value) and body, for other programs
 *        WIRE_OTHER=HOME names the device whose key the fault other-key signs with.
 *   wire_peer join HOME PORT TOKEN_FILE FAULT              joins with HOME/key.pem, made if absent; prints as put does
 *   wire_peer cert HOME DIR KIND [STATE]                   DIR becomes a copy of HOME with another certificate: none,
 *        stranger (of another CA), self (signed by itself), and with the coordinator's state directory expired or unknown
 *
 * Exit status 0 when the exchange went as told, whatever the answer; 2 otherwise.
 */
#include <time.h>

#include "../unit/fleet.h"
#include "buf.h"
#include "codec.h"
#include "faults.h"
#include "hex.h"
#include "messages.h"

/* --- talking */

/* Says what came: the word of a problem that is well formed, or "receipt". */
static void
print_answer(struct https *c, struct https_answer *a, uint64_t sent)
{
	struct problem p;
	struct receipt r;
	char word[96] = "none";

	if (a->status == 201 && manifest_receipt_decode(&r, a->body, a->len, NULL) == ERR_OK)
		strcpy(word, "receipt");
	else if (a->status >= 400 && messages_problem_decode(&p, a->body, a->len, NULL) == ERR_OK &&
	    (int)p.status == a->status && strncmp(p.type, "urn:rivulet:error:", 18) == 0)
		snprintf(word, sizeof(word), "%.77s", p.type + 18);
	const char *end = https_end(c, a);
	if (a->status == 0)
		strcpy(word, tls_why(c->session)[0] ? "no-answer" : "silence");
	else if (a->close && strcmp(end, "open") == 0)
		end = "lingering";
	printf("%03d %s %llu %s\n", a->status, word, (unsigned long long)sent, end);
	https_answer_free(a);
}

static bool
open_or_tell(struct https *c, const struct https_home *h, const char *port)
{
	if (https_open(c, h, port))
		return true;
	printf("000 handshake 0 closed\n");
	https_cut(c);
	return false;
}

static void
send_head(struct https *c, const struct attempt *a, const char *task, bool expect)
{
	char head[20480];
	int n =
	    snprintf(head, sizeof(head), "PUT /v1/deltas/%s HTTP/1.1\r\nHost: localhost\r\n", task);

	if (a->manifest[0])
		n += snprintf(
		    head + n, sizeof(head) - (size_t)n, "Rivulet-Manifest: %s\r\n", a->manifest);
	if (a->report[0])
		n += snprintf(
		    head + n, sizeof(head) - (size_t)n, "Rivulet-Report: %s\r\n", a->report);
	n += snprintf(head + n, sizeof(head) - (size_t)n, "%sContent-Length: %llu\r\n\r\n",
	    expect ? "Expect: 100-continue\r\n" : "", (unsigned long long)a->length);
	https_write(c, head, (uint64_t)n, false);
}

static void
send_waiting(struct https *c, const struct attempt *a, const char *task)
{
	struct https_answer answer;
	uint64_t sent = 0;

	send_head(c, a, task, true);
	https_read(c, &answer);
	if (answer.status == 100) {
		https_answer_free(&answer);
		sent = https_write(c, a->body, a->body_bytes, true);
		https_read(c, &answer);
	}
	print_answer(c, &answer, sent);
}

static void
send_rushing(struct https *c, const struct attempt *a, const char *task)
{
	struct https_answer answer;

	send_head(c, a, task, false);
	uint64_t sent = https_write(c, a->body, a->body_bytes, false);
	https_read(c, &answer);
	print_answer(c, &answer, sent);
}

static void
send_twice(const struct https_home *h, const char *port, const struct attempt *a, const char *task)
{
	struct https c[2];
	struct https_answer answer;

	for (int i = 0; i < 2; i++) {
		if (!open_or_tell(&c[i], h, port))
			return;
		send_head(&c[i], a, task, false);
		https_write(&c[i], a->body, a->body_bytes - 1, false);
	}
	for (int i = 0; i < 2; i++)
		https_write(&c[i], a->body + a->body_bytes - 1, 1, false);
	for (int i = 0; i < 2; i++) {
		https_read(&c[i], &answer);
		print_answer(&c[i], &answer, a->body_bytes);
		https_cut(&c[i]);
	}
}

static void
save(const struct attempt *a, const char *dir)
{
	char path[1024];
	struct why why = {""};

	snprintf(path, sizeof(path), "%s/manifest", dir);
	fleet_check(file_write(path, a->manifest, strlen(a->manifest), 0600, &why), &why);
	snprintf(path, sizeof(path), "%s/body", dir);
	fleet_check(file_write(path, a->body, a->body_bytes, 0600, &why), &why);
}

/* Sends the delta over connections of its own. */
static void
send_delta(const struct https_home *h, const char *port, const char *mode, const struct attempt *a,
    const char *task)
{
	struct https c;

	if (strncmp(mode, "save:", 5) == 0) {
		save(a, mode + 5);
		return;
	}
	if (strcmp(mode, "twice") == 0) {
		send_twice(h, port, a, task);
		return;
	}
	if (!open_or_tell(&c, h, port))
		return;
	if (strcmp(mode, "wait") == 0) {
		send_waiting(&c, a, task);
	} else if (strcmp(mode, "rush") == 0) {
		send_rushing(&c, a, task);
	} else if (strcmp(mode, "cut") == 0) {
		send_head(&c, a, task, false);
		uint64_t sent = https_write(&c, a->body, a->body_bytes / 2, false);
		printf("000 cut %llu closed\n", (unsigned long long)sent);
	} else {
		https_die(mode, "no such mode");
	}
	https_cut(&c);
}

static int
put(char **argv)
{
	const struct fault *f = find_fault(argv[4]);
	const char *signer = getenv("WIRE_OTHER");
	const bool sparse = strncmp(argv[2], "sparse:", 7) == 0;
	struct https_home h, other;
	struct x509_info info;
	struct attempt a = {.m = {.round = strtoull(argv[7], NULL, 10),
				.examples = EXAMPLES,
				.steps = STEPS,
				.elements = strtoull(argv[2] + (sparse ? 7 : 0), NULL, 10),
				.codec = sparse ? codec_find_name("sparse")->id : 0,
				.block = sparse ? SPARSE_BLOCK : 0,
				.normaliser = 2,
				.accuracy = 0.5f}};

	https_load(&h, argv[0]);
	https_load(&other, strcmp(f->name, "other-key") == 0 && signer ? signer : argv[0]);
	a.key = other.key;
	a.sparse = sparse;
	a.m.payload_bytes = sparse ? sparse_bytes(a.m.elements) : a.m.elements * 4;
	/* By its certificate: after a rotation the key does not tell. */
	if (!h.has_cert || x509_parse(&info, &h.cert, NULL) ||
	    !hex_decode(a.m.device, 32, info.common_name, strlen(info.common_name)))
		key_id(a.m.device, key_spki(h.key));
	if (!hex_decode(a.m.task, 16, argv[5], strlen(argv[5])) ||
	    !hex_decode(a.m.job, 16, argv[6], strlen(argv[6])) ||
	    !hex_decode(a.m.base, 32, argv[8], strlen(argv[8])))
		https_die("put", "bad task, job or base");
	make_attempt(&a, f);
	send_delta(&h, argv[1], argv[3], &a, argv[5]);
	free(a.body);
	key_free(h.key);
	key_free(other.key);
	return 0;
}

static int
ask(const char *home, const char *port)
{
	const char *data = getenv("WIRE_DATA");
	char offer[512];
	struct https_home h;
	struct https c;
	struct https_answer a;
	struct task t;
	struct why why = {""};
	char head[1024];

	int len = snprintf(offer, sizeof(offer),
	    "{\"agent\":\"1.0\",\"protocol\":1,\"data\":[{\"name\":\"%.60s\",\"examples\":1000}],"
	    "\"trainers\":[\"builtin\",\"noop\"],\"codecs\":[\"f32\",\"sparse\"],"
	    "\"layers\":[\"linear\",\"flatten\",\"relu\"],"
	    "\"features\":[\"figures\",\"buffered\",\"feedback\"],\"wait\":0}",
	    data ? data : "digits");
	https_load(&h, home);
	if (!https_open(&c, &h, port))
		https_die("ask", tls_why(c.session));
	int n = snprintf(head, sizeof(head),
	    "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len,
	    offer);
	https_write(&c, head, (uint64_t)n, false);
	https_read(&c, &a);
	if (a.status != 200 || messages_task_decode(&t, a.body, a.len, &why) != ERR_OK)
		https_die("ask", a.status == 200 ? why.text : a.body ? a.body : "no answer");
	if (t.wait)
		printf("wait %s\n", t.reason);
	else
		printf("%s %s %llu %s\n", t.task, t.job, (unsigned long long)t.round, t.model);
	messages_task_deinit(&t);
	https_answer_free(&a);
	https_cut(&c);
	key_free(h.key);
	return 0;
}

/* --- joining */

static struct key *
need_key(const char *home)
{
	char path[1024];
	struct key *key = NULL;
	struct why why = {""};

	snprintf(path, sizeof(path), "%s/key.pem", home);
	if (key_load(&key, path, &why) == ERR_OK)
		return key;
	fleet_check(file_mkdirs(home, 0700, &why), &why);
	fleet_check(key_generate(&key, &why), &why);
	fleet_check(key_save(key, path, &why), &why);
	return key;
}

/* The text of a join request; faults: bad-csr (its signature), junk-csr, junk. */
static void
join_body(struct buf *out, const struct key *key, const char *fault)
{
	static struct join_request q;
	struct why why = {""};

	q.csr_len = sizeof(q.csr);
	snprintf(q.name, sizeof(q.name), "peer");
	fleet_check(x509_csr_make(q.csr, &q.csr_len, key, "peer", &why), &why);
	if (strcmp(fault, "bad-csr") == 0)
		q.csr[q.csr_len - 1] ^= 1;
	if (strcmp(fault, "junk-csr") == 0)
		memset(q.csr, 0x30, q.csr_len);
	fleet_check(messages_join_encode(out, &q), &why);
	if (strcmp(fault, "junk") == 0)
		out->data[0] = '[';
}

static int
join(const char *home, const char *port, const char *token_file, const char *fault)
{
	struct https_home h;
	struct https c;
	struct https_answer a;
	struct why why = {""};
	char *token = NULL, head[1024];
	struct buf body;
	size_t len = 0;

	struct key *key = need_key(home);
	https_load(&h, home);
	h.has_cert = false;
	fleet_check(file_read(token_file, TOKEN_TEXT_MAX, &token, &len, &why), &why);
	token[strcspn(token, "\n")] = '\0';
	if (strcmp(fault, "bad-token") == 0)
		token[30] = token[30] == '0' ? '1' : '0';
	buf_init(&body, 65536);
	join_body(&body, key, fault);
	int n = snprintf(head, sizeof(head), "POST /v1/join HTTP/1.1\r\nHost: localhost\r\n");
	if (strcmp(fault, "no-token") != 0)
		n += snprintf(
		    head + n, sizeof(head) - (size_t)n, "Authorization: Bearer %s\r\n", token);
	n += snprintf(head + n, sizeof(head) - (size_t)n, "Content-Length: %zu\r\n\r\n", body.len);
	if (!open_or_tell(&c, &h, port))
		return 0;
	https_write(&c, head, (uint64_t)n, false);
	uint64_t sent = https_write(&c, body.data, body.len, false);
	https_read(&c, &a);
	print_answer(&c, &a, sent);
	https_cut(&c);
	key_free(h.key);
	key_free(key);
	free(token);
	buf_deinit(&body);
	return 0;
}

/* --- other certificates for a device's key */

static void
save_cert(const char *dir, const char *name, const struct x509_cert *cert)
{
	char path[1024], text[4 * X509_DER_MAX];
	size_t len = sizeof(text);
	struct why why = {""};

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fleet_check(x509_to_pem(text, &len, cert), &why);
	fleet_check(file_write(path, text, strlen(text), 0644, &why), &why);
}

static void
load_ca(struct fleet_member *ca, const char *state)
{
	char keys[900], path[1024];
	struct why why = {""};

	snprintf(keys, sizeof(keys), "%s/keys", state);
	snprintf(path, sizeof(path), "%s/ca.key", keys);
	fleet_check(key_load(&ca->key, path, &why), &why);
	if (!https_pem(&ca->cert, keys, "ca.crt"))
		https_die(keys, "no ca.crt");
}

static int
make_cert(const char *home, const char *dir, const char *kind, const char *state)
{
	const int64_t day = 86400, now = time(NULL);
	struct fleet_member ca = {.key = NULL};
	struct https_home h;
	struct x509_info info;
	struct why why = {""};
	char path[1024];

	https_load(&h, home);
	fleet_check(x509_parse(&info, &h.cert, &why), &why);
	fleet_check(file_mkdirs(dir, 0700, &why), &why);
	snprintf(path, sizeof(path), "%s/key.pem", dir);
	fleet_check(key_save(h.key, path, &why), &why);
	save_cert(dir, "ca.pem", &h.ca);
	if (strcmp(kind, "none") == 0) {
		key_free(h.key);
		return 0;
	}
	struct x509_request r = {.use = X509_CLIENT,
	    .common_name = info.common_name,
	    .spki = info.spki,
	    .not_before = now - 2 * day,
	    .not_after = strcmp(kind, "expired") == 0 ? now - day : now + day};
	if (strcmp(kind, "unknown") == 0)
		r.common_name = "00000000000000000000000000000000000000000000000000000000000000ff";
	if (state)
		load_ca(&ca, state);
	else
		ca = fleet_ca("Rivulet CA");
	if (strcmp(kind, "self") == 0)
		r.use = X509_CA;
	fleet_check(x509_issue(&h.cert, &r, r.use == X509_CA ? NULL : &ca.cert,
			r.use == X509_CA ? h.key : ca.key, &why),
	    &why);
	save_cert(dir, "cert.pem", &h.cert);
	key_free(h.key);
	fleet_free(&ca);
	return 0;
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "ask") == 0 && argc == 4)
		return ask(argv[2], argv[3]);
	if (strcmp(what, "put") == 0 && argc == 11)
		return put(argv + 2);
	if (strcmp(what, "join") == 0 && argc == 6)
		return join(argv[2], argv[3], argv[4], argv[5]);
	if (strcmp(what, "cert") == 0 && (argc == 5 || argc == 6))
		return make_cert(argv[2], argv[3], argv[4], argv[5]);
	fprintf(stderr, "usage: wire_peer ask|put|join|cert ...: see the head of wire_peer.c\n");
	return 2;
}
