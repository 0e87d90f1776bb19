#include "base64.h"
#include "field.h"
#include "json.h"
#include "messages_inside.h"

#include <stdio.h>
#include <string.h>

#define USES_MAX 1000000
#define EXPIRES_MAX (10ull * 366 * 86400)
#define EXPIRES_DEFAULT 86400
#define CSR_TEXT_MAX (BASE64_LEN(2048) + 1)

enum err
messages_join_encode(struct buf *out, const struct join_request *in)
{
	char csr[CSR_TEXT_MAX];

	if (in->csr_len > sizeof(in->csr))
		return ERR_LIMIT;
	struct json *o = json_object();
	base64_encode(csr, in->csr, in->csr_len);
	json_add_string(o, "csr", csr);
	if (in->name[0])
		json_add_string(o, "name", in->name);
	return messages_finish(out, o);
}

static void
read_join(void *to, struct field *o)
{
	struct join_request *out = to;
	char csr[CSR_TEXT_MAX];

	field_string(o, "csr", FIELD_LINE, csr, sizeof(csr), NULL);
	out->csr_len = sizeof(out->csr);
	if (!o->reader->err &&
	    (base64_decode(out->csr, &out->csr_len, csr, strlen(csr)) || out->csr_len == 0))
		field_fail(o, "csr", "must be base64");
	field_string(o, "name", FIELD_LINE, out->name, sizeof(out->name), "");
}

enum err
messages_join_decode(struct join_request *out, const char *text, size_t len, struct why *why)
{
	return messages_decode(&(struct message){out, sizeof(*out), read_join}, text, len, why);
}

enum err
messages_joined_encode(struct buf *out, const struct join_answer *in)
{
	struct json *o = json_object();

	json_add_string(o, "device", in->device);
	json_add_string(o, "name", in->name);
	json_add_string(o, "role", in->role);
	json_add_string(o, "certificate", in->certificate);
	json_add_string(o, "ca", in->ca);
	if (*in->signer)
		json_add_string(o, "signer", in->signer);
	json_add_double(o, "renew_after", (double)in->renew_after);
	return messages_finish(out, o);
}

static void
read_joined(void *to, struct field *o)
{
	struct join_answer *out = to;

	field_hex(o, "device", out->device, sizeof(out->device), NULL);
	field_string(o, "name", FIELD_LINE, out->name, sizeof(out->name), "");
	field_string(o, "role", FIELD_NAME, out->role, sizeof(out->role), NULL);
	field_string(
	    o, "certificate", FIELD_TEXT, out->certificate, sizeof(out->certificate), NULL);
	field_string(o, "ca", FIELD_TEXT, out->ca, sizeof(out->ca), NULL);
	field_string(o, "signer", FIELD_TEXT, out->signer, sizeof(out->signer), "");
	out->renew_after = (int64_t)field_u64(o, "renew_after", 0, JSON_INT_MAX, 0);
}

enum err
messages_joined_decode(struct join_answer *out, const char *text, size_t len, struct why *why)
{
	return messages_decode(&(struct message){out, sizeof(*out), read_joined}, text, len, why);
}

enum err
messages_abort_encode(struct buf *out, const struct abort_request *in)
{
	struct json *o = json_object();
	char log[sizeof(in->log)];

	/* A trainer writes what it likes, colours and broken text included. */
	field_show(log, sizeof(log), in->log, FIELD_SHOWN_TEXT);
	json_add_string(o, "reason", in->cause.word);
	json_add_string(o, "log", log);
	if (in->cause.needed_bytes > 0) {
		json_add_u64(o, "needed_bytes", in->cause.needed_bytes);
		json_add_u64(o, "memory_bytes", in->cause.memory_bytes);
	}
	return messages_finish(out, o);
}

static void
read_abort(void *to, struct field *o)
{
	struct abort_request *out = to;
	char word[ABORT_WORD_MAX] = "";

	field_string(o, "reason", FIELD_NAME, word, sizeof(word), NULL);
	out->cause = abort_reason_parse(word);
	out->cause.needed_bytes = field_u64(o, "needed_bytes", 0, JSON_INT_MAX, 0);
	out->cause.memory_bytes = field_u64(o, "memory_bytes", 0, JSON_INT_MAX, 0);
	field_string(o, "log", FIELD_TEXT, out->log, sizeof(out->log), "");
}

enum err
messages_abort_decode(struct abort_request *out, const char *text, size_t len, struct why *why)
{
	return messages_decode(&(struct message){out, sizeof(*out), read_abort}, text, len, why);
}

enum err
messages_problem_encode(struct buf *out, const struct problem *in)
{
	struct json *o = json_object();

	json_add_string(o, "type", in->type);
	json_add_string(o, "title", in->title);
	if (in->status)
		json_add_u64(o, "status", in->status);
	if (in->detail[0])
		json_add_string(o, "detail", in->detail);
	return messages_finish(out, o);
}

static void
read_problem(void *to, struct field *o)
{
	struct problem *out = to;

	field_string(o, "type", FIELD_LINE, out->type, sizeof(out->type), "about:blank");
	field_string(o, "title", FIELD_SHOWN, out->title, sizeof(out->title), "");
	out->status = field_u64(o, "status", 100, 599, 0);
	field_string(o, "detail", FIELD_SHOWN, out->detail, sizeof(out->detail), "");
}

enum err
messages_problem_decode(struct problem *out, const char *text, size_t len, struct why *why)
{
	return messages_decode(&(struct message){out, sizeof(*out), read_problem}, text, len, why);
}

enum err
messages_token_encode(struct buf *out, const struct token_request *in)
{
	struct json *o = json_object(), *labels = json_object();

	if (in->access)
		json_add_bool(o, "access", true);
	else
		json_add_u64(o, "uses", in->uses);
	json_add_u64(o, "expires_s", in->expires_s);
	json_add_string(o, "role", in->role);
	if (in->suspended)
		json_add_bool(o, "suspended", true);
	if (in->name[0])
		json_add_string(o, "name", in->name);
	if (in->name_prefix[0])
		json_add_string(o, "name_prefix", in->name_prefix);
	if (in->owner[0])
		json_add_string(o, "owner", in->owner);
	for (size_t i = 0; i < in->label_count; i++)
		json_add_string(labels, in->labels[i].key, in->labels[i].value);
	if (in->access)
		json_free(labels);
	else
		json_add(o, "labels", labels);
	return messages_finish(out, o);
}

static void
check_token_role(const struct token_request *t, struct field *o)
{
	static const char *const joining[] = {"device", "reader", "submitter", "admin", NULL};
	static const char *const access[] = {"reader", "submitter", "metrics", NULL};

	for (const char *const *role = t->access ? access : joining; *role; role++)
		if (strcmp(t->role, *role) == 0)
			return;
	field_fail(o, "role",
	    t->access ? "of an access token must be reader, submitter or metrics"
		: !strcmp(t->role, "metrics") ? "metrics is of access tokens alone"
					      : "must be device, reader, submitter or admin");
}

static void
read_token_name(struct token_request *out, struct field *o)
{
	field_string(o, "name", FIELD_LINE, out->name, sizeof(out->name), "");
	field_string(o, "name_prefix", FIELD_LINE, out->name_prefix, sizeof(out->name_prefix), "");
	bool named = out->name[0] || out->name_prefix[0];
	if (out->access && named)
		field_fail(o, "name", "is for a device that joins, not for an access token");
	else if (out->name[0] && out->name_prefix[0])
		field_fail(o, "name", "and name_prefix do not go together");
	else if (out->name[0] && out->uses > 1)
		field_fail(o, "name", "is one device's: a token that gives it has one use");
}

static void
read_token(void *to, struct field *o)
{
	struct token_request *out = to;
	struct field_list list;
	struct field item;

	out->access = field_bool(o, "access", false);
	if (out->access && field_has(o, "uses"))
		field_fail(o, "uses", "are not counted for an access token");
	out->suspended = field_bool(o, "suspended", false);
	if (out->access && out->suspended)
		field_fail(o, "suspended", "is for devices that join, not for an access token");
	if (out->access && field_has(o, "labels"))
		field_fail(o, "labels", "are for devices that join, not for an access token");
	out->uses = field_u64(o, "uses", 1, USES_MAX, 1);
	out->expires_s = field_u64(o, "expires_s", 1, EXPIRES_MAX, EXPIRES_DEFAULT);
	if (!out->access && field_has(o, "owner"))
		field_fail(o, "owner", "is for an access token");
	field_string(o, "owner", FIELD_NAME, out->owner, sizeof(out->owner), "");
	field_string(
	    o, "role", FIELD_NAME, out->role, sizeof(out->role), out->access ? "reader" : "device");
	if (!o->reader->err)
		check_token_role(out, o);
	read_token_name(out, o);
	field_map(&list, o, "labels", sizeof(out->labels) / sizeof(*out->labels));
	for (size_t i = 0; field_each(&list, &item); i++) {
		field_member(&item, FIELD_NAME, out->labels[i].key, RECIPE_NAME_MAX);
		field_string(&item, NULL, FIELD_LINE, out->labels[i].value, RECIPE_NAME_MAX, NULL);
		out->label_count = i + 1;
	}
}

enum err
messages_token_decode(struct token_request *out, const char *text, size_t len, struct why *why)
{
	return messages_decode(&(struct message){out, sizeof(*out), read_token}, text, len, why);
}

enum err
messages_change_encode(struct buf *out, const struct device_change *in)
{
	struct json *o = json_object(), *labels = json_object(), *devices = json_array();

	if (in->name[0])
		json_add_string(o, "name", in->name);
	for (size_t i = 0; i < in->label_count; i++)
		if (in->labels[i].gone)
			json_add_null(labels, in->labels[i].key);
		else
			json_add_string(labels, in->labels[i].key, in->labels[i].value);
	for (size_t i = 0; i < in->device_count; i++)
		json_push(devices, json_new_string(in->devices[i]));
	json_add(o, "devices", devices);
	json_add(o, "labels", labels);
	json_add_bool(o, "dry_run", in->dry_run);
	return messages_finish(out, o);
}

static void
read_change(void *to, struct field *o)
{
	struct device_change *out = to;
	struct field_list list;
	struct field item;

	field_string(o, "name", FIELD_LINE, out->name, sizeof(out->name), "");
	out->dry_run = field_bool(o, "dry_run", false);
	field_map(&list, o, "labels", sizeof(out->labels) / sizeof(*out->labels));
	for (size_t i = 0; field_each(&list, &item); i++) {
		field_member(&item, FIELD_NAME, out->labels[i].key, RECIPE_NAME_MAX);
		out->labels[i].gone = json_kind(item.value) == JSON_NULL;
		if (!out->labels[i].gone)
			field_string(
			    &item, NULL, FIELD_LINE, out->labels[i].value, RECIPE_NAME_MAX, NULL);
		out->label_count = i + 1;
	}
	field_array(&list, o, "devices", 0, DEVICE_CHANGE_MAX);
	while (field_each(&list, &item))
		field_hex(
		    &item, NULL, out->devices[out->device_count++], sizeof(*out->devices), NULL);
}

enum err
messages_change_decode(struct device_change *out, const char *text, size_t len, struct why *why)
{
	return messages_decode(&(struct message){out, sizeof(*out), read_change}, text, len, why);
}
