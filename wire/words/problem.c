#include "problem.h"

#include <string.h>

static const struct {
	const char *word;
	unsigned status;
	const char *title;
} problems[] = {
    [PROBLEM_NONE] = {"", 500, ""},
    [PROBLEM_BAD_REQUEST] = {"bad-request", 400, "The request is malformed"},
    [PROBLEM_BAD_MANIFEST] = {"bad-manifest", 400, "The manifest is malformed"},
    [PROBLEM_BAD_REPORT] = {"bad-report", 400,
	"The report is malformed or does not match the manifest"},
    [PROBLEM_BAD_MESSAGE] = {"bad-message", 400, "The message is malformed"},
    [PROBLEM_BAD_CSR] = {"bad-csr", 400, "The certificate request is malformed or badly signed"},
    [PROBLEM_WRONG_LENGTH] = {"wrong-length", 400, "Content-Length does not match the manifest"},
    [PROBLEM_WRONG_ROOT] = {"wrong-root", 400, "The leaves do not match the signed root"},
    [PROBLEM_WRONG_CHUNK] = {"wrong-chunk", 400, "A chunk does not match its leaf"},
    [PROBLEM_WRONG_HASH] = {"wrong-hash", 400, "The body does not match its hash"},
    [PROBLEM_NOT_FINITE] = {"not-finite", 400, "The delta holds NaN or infinity"},
    [PROBLEM_NO_EXAMPLES] = {"no-examples", 400, "The delta was trained on no examples"},
    [PROBLEM_NO_NORMALISER] = {"no-normaliser", 400,
	"The delta does not say how much work is in it"},
    [PROBLEM_TOO_MANY_EXAMPLES] = {"too-many-examples", 400,
	"The delta claims more examples than the job allows"},
    [PROBLEM_TOO_MANY_STEPS] = {"too-many-steps", 400,
	"The delta has more steps in it than the task gave"},
    [PROBLEM_NORM_TOO_LARGE] = {"norm-too-large", 400, "The delta is larger than the job allows"},
    [PROBLEM_UNKNOWN_CODEC] = {"unknown-codec", 400, "The codec is not handled, or not the job's"},
    [PROBLEM_UNSUPPORTED] = {"unsupported", 400,
	"The manifest asks for something this coordinator does not do"},
    [PROBLEM_WRONG_KIND] = {"wrong-kind", 400, "The manifest is of another kind than the task"},
    [PROBLEM_BAD_MODEL] = {"bad-model", 400, "The model file is malformed"},
    [PROBLEM_NO_CERTIFICATE] = {"no-certificate", 401, "This needs a client certificate"},
    [PROBLEM_BAD_TOKEN] = {"bad-token", 401, "The token is unknown, spent, revoked or expired"},
    [PROBLEM_UNKNOWN_DEVICE] = {"unknown-device", 403,
	"This certificate belongs to no device of this coordinator"},
    [PROBLEM_EXPIRED_CERTIFICATE] = {"expired-certificate", 403,
	"The client certificate has expired; renew it"},
    [PROBLEM_DEVICE_SUSPENDED] = {"device-suspended", 403, "The device is suspended"},
    [PROBLEM_DEVICE_REVOKED] = {"device-revoked", 403, "The device is revoked"},
    [PROBLEM_DEVICE_LEFT] = {"device-left", 403, "The device has left; it may join again"},
    [PROBLEM_RETIRED_CA] = {"retired-ca", 403,
	"The certificate is of a CA that was replaced; join again"},
    [PROBLEM_KEY_ROTATED] = {"key-rotated", 403,
	"The key was replaced by a newer one of the device"},
    [PROBLEM_FORBIDDEN] = {"forbidden", 403, "The role does not allow this"},
    [PROBLEM_WRONG_DEVICE] = {"wrong-device", 403, "The manifest names another device"},
    [PROBLEM_WRONG_TASK] = {"wrong-task", 403, "The task is not this device's"},
    [PROBLEM_BAD_SIGNATURE] = {"bad-signature", 403, "The signature does not verify"},
    [PROBLEM_NOT_FOUND] = {"not-found", 404, "There is no such thing"},
    [PROBLEM_NO_DIFFERENCE] = {"no-difference", 404, "There is no difference between these models"},
    [PROBLEM_UNKNOWN_JOB] = {"unknown-job", 404, "There is no such job"},
    [PROBLEM_METHOD_NOT_ALLOWED] = {"method-not-allowed", 405, "The method is not allowed here"},
    [PROBLEM_STALE_ROUND] = {"stale-round", 409, "The round is not the job's open round"},
    [PROBLEM_TOO_STALE] = {"too-stale", 409, "The task is of too old a round"},
    [PROBLEM_STALE_BASE] = {"stale-base", 409, "The task started from a model that was given up"},
    [PROBLEM_WRONG_BASE] = {"wrong-base", 409, "The delta was made from another base model"},
    [PROBLEM_WRONG_OFFSET] = {"wrong-offset", 409, "What is here of the delta ends elsewhere"},
    [PROBLEM_USED_TASK] = {"used-task", 409, "Another delta was accepted for this task"},
    [PROBLEM_ROUND_CLOSED] = {"round-closed", 409, "The round closed before the delta was durable"},
    [PROBLEM_WRONG_STATE] = {"wrong-state", 409,
	"The state of the job or device does not allow this"},
    [PROBLEM_OWNER_LIMIT] = {"owner-limit", 409, "The owner has as much as it may"},
    [PROBLEM_DELETED_JOB] = {"deleted-job", 409, "The job was deleted for good"},
    [PROBLEM_FOREIGN_JOB] = {"foreign-job", 409, "Somebody else submitted this document"},
    [PROBLEM_AMBIGUOUS] = {"ambiguous", 409, "The word fits several things"},
    [PROBLEM_KEY_IN_USE] = {"key-in-use", 409, "The key belongs to another identity, or did"},
    [PROBLEM_NAME_IN_USE] = {"name-in-use", 409, "Another device has this name"},
    [PROBLEM_LENGTH_REQUIRED] = {"length-required", 411, "A body needs Content-Length"},
    [PROBLEM_TOO_LARGE] = {"too-large", 413, "The body is larger than the limit"},
    [PROBLEM_PATH_TOO_LONG] = {"path-too-long", 414, "The path is too long"},
    [PROBLEM_BAD_RANGE] = {"bad-range", 416, "The range lies outside the file"},
    [PROBLEM_EXPECTATION_FAILED] = {"expectation-failed", 417, "The expectation is unknown"},
    [PROBLEM_BAD_JOB] = {"bad-job", 422, "The job document is wrong"},
    [PROBLEM_TOO_MANY_REQUESTS] = {"too-many-requests", 429,
	"This identity asks too often or has too many connections"},
    [PROBLEM_HEADER_TOO_LARGE] = {"header-too-large", 431, "The header is larger than the limit"},
    [PROBLEM_INTERNAL] = {"internal", 500, "The coordinator failed"},
    [PROBLEM_UNAVAILABLE] = {"unavailable", 503, "The coordinator can't do this now"},
    [PROBLEM_VERSION] = {"version", 505, "HTTP/1.1 is needed"},
    [PROBLEM_NO_SPACE] = {"no-space", 507, "The coordinator is out of disk space"},
    [PROBLEM_UNKNOWN] = {"", 500, ""},
};

const char *
problem_word(enum problem_type t)
{
	return problems[t].word;
}

unsigned
problem_status(enum problem_type t)
{
	return problems[t].status;
}

const char *
problem_title(enum problem_type t)
{
	return problems[t].title;
}

enum problem_type
problem_find(const char *type)
{
	const char *colon = strrchr(type, ':'), *word = colon ? colon + 1 : type;

	if (!*word || strcmp(type, "about:blank") == 0)
		return PROBLEM_NONE;
	for (enum problem_type t = PROBLEM_NONE + 1; t < PROBLEM_UNKNOWN; t++)
		if (strcmp(problems[t].word, word) == 0)
			return t;
	return PROBLEM_UNKNOWN;
}
