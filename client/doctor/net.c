#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "cmd.h"
#include "doctor.h"
#include "hex.h"
#include "home.h"
#include "json.h"
#include "session.h"
#include "settings.h"

#define CONNECT_MS 10000
#define IDLE_S 20.0
#define CLOCK_OFF_S 60
#define HOST_MAX 260
#define CA_NAME_ROOM 17 /* 16 digits of a fingerprint, as in other messages */

/* One address under examination. */
struct place {
	struct cmd_doctor *d;
	const char *url;
	char host[HOST_MAX], port[8];
};

/* "https://host:port", as address_normalise leaves it. */
static bool
split(struct place *p)
{
	const char *host = p->url + strlen("https://"), *colon = strrchr(host, ':');
	size_t len = colon ? (size_t)(colon - host) : 0;

	if (len == 0 || len >= sizeof(p->host))
		return false;
	snprintf(p->port, sizeof(p->port), "%s", colon + 1);
	if (host[0] == '[' && len > 2)
		snprintf(p->host, sizeof(p->host), "%.*s", (int)len - 2, host + 1);
	else
		snprintf(p->host, sizeof(p->host), "%.*s", (int)len, host);
	return true;
}

/* Connects within a bound; 0 or the errno. */
static int
try_connect(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int error = 0;
	socklen_t len = sizeof(error);

	if (fd < 0)
		return errno;
	if (connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
		struct pollfd p = {.fd = fd, .events = POLLOUT};
		error = errno;
		if (error == EINPROGRESS) {
			int n = poll(&p, 1, CONNECT_MS);
			if (n == 0)
				error = ETIMEDOUT;
			else if (n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
				error = errno;
		}
	}
	close(fd);
	return error;
}

static bool
check_tcp(struct place *p, const struct addrinfo *all)
{
	int error = 0;

	for (const struct addrinfo *a = all; a; a = a->ai_next) {
		error = try_connect(a);
		if (error == 0)
			return true;
	}
	cmd_doctor_add(p->d, "tcp", CMD_DOCTOR_FAULT, CMD_UNREACHABLE,
	    error == ECONNREFUSED
		? "is rivuletd running there, and is the port right?"
		: "is the network up, and does a firewall let this machine out to that port?",
	    "%s: nobody answers on port %s: %s", p->host, p->port, strerror(error));
	return false;
}

static bool
check_name(struct place *p)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *all = NULL;
	int rc = getaddrinfo(p->host, p->port, &hints, &all);

	if (rc != 0) {
		cmd_doctor_add(p->d, "dns", CMD_DOCTOR_FAULT, CMD_UNREACHABLE,
		    "is the name right, and does this machine's name server know it?",
		    "the name %s has no address: %s", p->host, gai_strerror(rc));
		return false;
	}
	bool ok = check_tcp(p, all);
	freeaddrinfo(all);
	return ok;
}

/* One GET with these options; the status, or 0. */
static long
look(const struct transport_options *options, const char *base, const char *path,
    struct transport_answer *out, struct why *why)
{
	char url[ADDRESS_MAX + 80];
	struct transport *t;

	*out = (struct transport_answer){.retry_after_s = -1};
	snprintf(url, sizeof(url), "%s%s", base, path);
	const struct transport_request request = {.method = "GET", .url = url, .idle_s = IDLE_S};
	if (transport_new(&t, options, why))
		return 0;
	enum err e = transport_do(t, &request, out, why);
	transport_free(t);
	return e ? 0 : out->status;
}

static void
note_clock(struct cmd_doctor *d, const struct transport_answer *answer)
{
	if (answer->date == 0 || d->offset_known)
		return;
	d->offset = answer->date - clock_unix();
	d->offset_known = true;
}

static void
name_ca(char out[CA_NAME_ROOM], const struct x509_cert *cert)
{
	uint8_t hash[HASH_LEN];

	hash_sha256(hash, cert->der, cert->len);
	hex_encode(out, hash, CA_NAME_ROOM / 2);
}

static bool
is_among(const struct trust *t, const struct x509_cert *cert)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->ca[i].len == cert->len && memcmp(t->ca[i].der, cert->der, cert->len) == 0)
			return true;
	return false;
}

/* A coordinator says of itself which CA it has. Who is in between passes on what the true one says: then it is this device's own. */
static bool
add_other_ca(struct place *p)
{
	const struct transport_options any = {.insecure = true};
	const struct trust *ours = &p->d->held.trust;
	char there[CA_NAME_ROOM], here[CA_NAME_ROOM];
	struct trust *offered = malloc(sizeof(*offered));
	struct transport_answer answer;
	struct why why = {""};

	bool found = look(&any, p->url, "/v1/ca", &answer, &why) == 200 && offered &&
	    trust_parse(offered, buf_str(&answer.body), &why) == ERR_OK;
	for (size_t i = 0; found && i < offered->count; i++)
		found = !is_among(ours, &offered->ca[i]);
	if (found) {
		name_ca(there, &offered->ca[0]);
		name_ca(here, &ours->ca[ours->count - 1]);
		cmd_doctor_add(p->d, "ca", CMD_DOCTOR_FAULT, CMD_DENIED,
		    "no firewall: compare with \"rivuletd ca status\" there. Its keys/ may be of "
		    "before a change, or another coordinator's. If the CA is new for good: stop "
		    "the "
		    "agent and join again with a token; the device keeps its key",
		    "%s: a coordinator of another CA (%s...) than this device's (%s...)", p->url,
		    there, here);
	}
	transport_answer_deinit(&answer);
	free(offered);
	return found;
}

static void
add_distrust(struct place *p, enum transport_distrust distrust, const struct transport_answer *seen)
{
	static const char clock_or_cert[] = "set this machine's clock; if it is right, the "
					    "coordinator's certificate must be made again "
					    "(operators.md)";
	bool off =
	    p->d->offset_known && (p->d->offset > CLOCK_OFF_S || p->d->offset < -CLOCK_OFF_S);

	switch (distrust) {
	case TRANSPORT_EXPIRED:
		cmd_doctor_add(p->d, "tls", CMD_DOCTOR_FAULT, CMD_DENIED, clock_or_cert,
		    "%s: the coordinator's certificate has expired (%s)%s", p->url, seen->expires,
		    off ? ", by a clock that is wrong" : "");
		break;
	case TRANSPORT_NOT_YET:
		cmd_doctor_add(p->d, "tls", CMD_DOCTOR_FAULT, CMD_DENIED, clock_or_cert,
		    "%s: the coordinator's certificate is not valid yet by this machine's clock",
		    p->url);
		break;
	case TRANSPORT_NAME:
		cmd_doctor_add(p->d, "tls", CMD_DOCTOR_FAULT, CMD_DENIED,
		    "use a name of the certificate, or make it again with this one (rivuletd init "
		    "--name, operators.md)",
		    "%s: the coordinator's certificate is not for the name %s", p->url, p->host);
		break;
	default:
		if (add_other_ca(p))
			break;
		cmd_doctor_add(p->d, "tls", CMD_DOCTOR_FAULT, CMD_DENIED,
		    "a captive portal or a proxy that opens TLS: let the connection through "
		    "untouched",
		    "%s: the certificate there is not of this device's CA; its issuer is \"%s\"",
		    p->url, seen->issuer);
	}
}

/* A peer whose certificate is not believed still says who it is, and what its clock shows. Nothing secret is sent. */
static void
explain_distrust(struct place *p, enum transport_distrust distrust)
{
	const struct transport_options any = {.insecure = true};
	struct transport_answer seen;
	struct why why = {""};

	look(&any, p->url, "/healthz", &seen, &why);
	if (distrust == TRANSPORT_EXPIRED || distrust == TRANSPORT_NOT_YET)
		note_clock(p->d, &seen);
	add_distrust(p, distrust, &seen);
	transport_answer_deinit(&seen);
}

/* Without this device's certificate all is well: then it is that one which the coordinator does not take. */
static bool
add_refused_certificate(struct place *p, const struct why *failure)
{
	const struct transport_options anonymous = {.ca_pem = p->d->held.ca_pem};
	struct transport_answer answer;
	struct why why = {""};

	bool found = look(&anonymous, p->url, "/healthz", &answer, &why) == 200;
	if (found)
		cmd_doctor_add(p->d, "ca", CMD_DOCTOR_FAULT, CMD_DENIED,
		    "no firewall: its CA was replaced while this device was away, or its keys/ are "
		    "of before a change (\"rivuletd ca status\" there). If the CA is new for good: "
		    "stop the agent and join again with a token; the device keeps its key",
		    "%s: the coordinator answers, but not to this device's certificate, whose CA "
		    "it does not know (%.100s)",
		    p->url, failure->text);
	transport_answer_deinit(&answer);
	return found;
}

/* It takes connections, but there was no TLS. */
static void
explain_silence(struct place *p, const struct why *failure)
{
	const struct transport_options plain = {.ca_pem = NULL};
	struct transport_answer seen;
	char base[HOST_MAX + 32];
	struct why why = {""};

	snprintf(base, sizeof(base), strchr(p->host, ':') ? "http://[%s]:%s" : "http://%s:%s",
	    p->host, p->port);
	bool http = look(&plain, base, "/", &seen, &why);
	transport_answer_deinit(&seen);
	if (http)
		cmd_doctor_add(p->d, "tls", CMD_DOCTOR_FAULT, CMD_UNREACHABLE,
		    "is it the right port? A captive portal answers like this, too",
		    "%s: what answers there speaks plain HTTP, not TLS", p->url);
	else if (!add_refused_certificate(p, failure))
		cmd_doctor_add(p->d, "tls", CMD_DOCTOR_FAULT, CMD_UNREACHABLE,
		    "a proxy or firewall may cut the connection; rivuletd's log says what it saw",
		    "%s: the connection came about, but no answer: %.200s", p->url, failure->text);
}

/* What a refusal means for whoever looks after this device. */
static void
explain_refusal(struct place *p, long status, enum problem_type type, const char *text)
{
	static const struct {
		enum problem_type type;
		const char *text, *advice;
	} table[] = {
	    {PROBLEM_DEVICE_SUSPENDED, "the coordinator has suspended this device",
		"ask its operator; rivulet device resume lets it go on, or, where a restored "
		"backup left "
		"its key in doubt (device list --contested), rivulet device rekey"},
	    {PROBLEM_DEVICE_REVOKED, "the coordinator has revoked this device for good",
		"if that was a mistake: rivulet leave --force, then join with a new token"},
	    {PROBLEM_DEVICE_LEFT, "the coordinator says that this device has left",
		"rivulet leave, then join again with a token"},
	    {PROBLEM_KEY_ROTATED, "the coordinator knows this device by a newer key",
		"rivulet rotate finishes an interrupted change of key; an old copy of the home "
		"cannot "
		"be used"},
	    {PROBLEM_UNKNOWN_DEVICE, "the coordinator does not know this device",
		"was it restored from an older backup? stop the agent and join again with a token: "
		"the device keeps its key"},
	    {PROBLEM_RETIRED_CA, "this device's certificate is of a CA that was replaced",
		"stop the agent and join again with a token: the device keeps its key"},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (type == table[i].type) {
			cmd_doctor_add(p->d, "standing", CMD_DOCTOR_FAULT, CMD_DENIED,
			    table[i].advice, "%s: %s", p->url, table[i].text);
			return;
		}
	if (type == PROBLEM_EXPIRED_CERTIFICATE)
		cmd_doctor_add(p->d, "standing", CMD_DOCTOR_WARNING, CMD_DENIED,
		    "a running agent renews it by itself, within a minute of both clocks being "
		    "right; see the findings of clock and certificate",
		    "%s: reached; it refuses the certificate as expired, or as not valid yet",
		    p->url);
	else if (status >= 500 || status == 429)
		cmd_doctor_add(p->d, "standing", CMD_DOCTOR_WARNING, CMD_UNREACHABLE,
		    "it should pass; the coordinator's /readyz and log say more",
		    "%s: reached, but it cannot serve now: %s", p->url, text);
	else if (type)
		cmd_doctor_add(p->d, "standing", CMD_DOCTOR_FAULT, CMD_DENIED,
		    "see the coordinator's log", "%s: it refuses this device: %s", p->url, text);
	else
		cmd_doctor_add(p->d, "standing", CMD_DOCTOR_FAULT, CMD_UNREACHABLE,
		    "is the address right?", "%s: what answers there is no coordinator (%s)",
		    p->url, text);
}

/* Does this coordinator, by its status, replace its CA? */
static bool
is_replacing(const struct transport_answer *status)
{
	struct json *doc = NULL;
	bool rotating = false;

	if (!json_parse(&doc, buf_str(&status->body), status->body.len, NULL))
		(void)json_bool(json_get(json_get(doc, "ca"), "rotating"), &rotating);
	json_free(doc);
	return rotating;
}

static bool
is_of(const struct x509_info *cert, const struct x509_cert *ca)
{
	uint8_t key[X509_KEY_ID_LEN];
	struct x509_info info;

	if (x509_parse(&info, ca, NULL))
		return false;
	x509_key_id(key, info.spki);
	return memcmp(key, cert->issuer_key, sizeof(key)) == 0;
}

/* While the CA is replaced: whose certificate is still of the old one is shut out once that is over. */
static void
check_change_of_ca(struct place *p, const struct transport_answer *status)
{
	const struct transport_options anonymous = {.ca_pem = p->d->held.ca_pem};
	struct trust *offered = malloc(sizeof(*offered));
	struct transport_answer answer = {.retry_after_s = -1};
	struct why why = {""};
	bool old = offered && is_replacing(status) &&
	    look(&anonymous, p->url, "/v1/ca", &answer, &why) == 200 &&
	    trust_parse(offered, buf_str(&answer.body), &why) == ERR_OK;

	/* The present CA comes first. */
	if (old && is_of(&p->d->held.cert, &offered->ca[0])) {
		bool runs = home_holder(p->d->home) != 0;
		cmd_doctor_add(p->d, "ca", runs ? CMD_DOCTOR_NOTE : CMD_DOCTOR_WARNING,
		    runs ? 0 : CMD_DENIED,
		    runs ? "the agent renews within two minutes, and in a long training before or "
			   "after it"
			 : "start the agent before \"rivuletd ca finish\"",
		    "%s: its CA is being replaced, and this device is not yet under the new one",
		    p->url);
	} else if (old)
		cmd_doctor_add(p->d, "ca", CMD_DOCTOR_FINE, 0, NULL,
		    "%s: its CA is being replaced; this device is under the new one", p->url);
	transport_answer_deinit(&answer);
	free(offered);
}

static void
check_tls(struct place *p)
{
	struct credentials *held = &p->d->held;
	enum problem_type type;
	char key[KEY_PEM_MAX] = "";
	struct transport_answer answer;
	struct why why = {""};

	if (key_pem(held->key, key))
		return;
	const struct transport_options options = {
	    .ca_pem = held->ca_pem, .cert_pem = held->cert_pem, .key_pem = key};
	long status = look(&options, p->url, "/v1/status", &answer, &why);
	hash_wipe(key, sizeof(key));
	if (status)
		note_clock(p->d, &answer);
	if (answer.distrust != TRANSPORT_TRUSTED)
		explain_distrust(p, answer.distrust);
	else if (status == 0)
		explain_silence(p, &why);
	else if (session_refusal(&answer, &type, &why))
		explain_refusal(p, status, type, why.text);
	else {
		cmd_doctor_add(p->d, "coordinator", CMD_DOCTOR_FINE, 0, NULL,
		    "%s answers, and knows this device", p->url);
		check_change_of_ca(p, &answer);
	}
	transport_answer_deinit(&answer);
}

static void
check_clock(struct cmd_doctor *d)
{
	char span[32];

	if (!d->offset_known)
		return;
	cmd_doctor_span(span, (double)d->offset);
	if (d->offset > CLOCK_OFF_S || d->offset < -CLOCK_OFF_S)
		cmd_doctor_add(d, "clock", CMD_DOCTOR_WARNING, CMD_FAILED,
		    "set the one that is wrong (is there a network time service?); certificates "
		    "are "
		    "checked by the coordinator's",
		    "this machine's clock is %s %s by the coordinator's", span,
		    d->offset > 0 ? "slow" : "fast");
	else
		cmd_doctor_add(d, "clock", CMD_DOCTOR_FINE, 0, NULL,
		    "agrees with the coordinator's within %s", span);
}

static void
check_mirror(struct cmd_doctor *d, const char *mirror)
{
	static const char path[] =
	    "/v1/models/0000000000000000000000000000000000000000000000000000000000000000";
	const struct transport_options options = {.ca_pem = NULL};
	struct transport_answer answer;
	struct why why = {""};
	long status = look(&options, mirror, path, &answer, &why);

	/* It has no such model; any answer of its own will do. */
	if (status > 0 && status < 500)
		cmd_doctor_add(
		    d, "mirror", CMD_DOCTOR_FINE, 0, NULL, "%s answers (%ld)", mirror, status);
	else
		cmd_doctor_add(d, "mirror", CMD_DOCTOR_WARNING, CMD_UNREACHABLE,
		    "models come from the coordinator instead; see model_mirror in rivulet.conf",
		    "%s does not serve: %.200s", mirror, status ? "an error of its own" : why.text);
	transport_answer_deinit(&answer);
}

void
cmd_doctor_net_check(struct cmd_doctor *d)
{
	struct why ignored;
	struct settings *s = NULL;
	enum err e = settings_load(&s, d->home, d->config, &ignored);
	bool own = !e && s->url_count > 0;
	size_t n = own ? s->url_count : d->identity.url_count;

	for (size_t i = 0; d->usable && i < n; i++) {
		struct place p = {.d = d, .url = own ? s->urls[i] : d->identity.urls[i]};
		if (split(&p) && check_name(&p))
			check_tls(&p);
	}
	check_clock(d);
	if (!e && *s->mirror)
		check_mirror(d, s->mirror);
	if (!e)
		settings_free(s);
}
