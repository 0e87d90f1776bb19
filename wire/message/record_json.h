#ifndef RECORD_JSON_H
#define RECORD_JSON_H
#include "record.h"

/* An entry of the audit chain and its details as JSON: in answers of the coordinator, and details as lines of a file
 * (FORMAT.md, "Audit entries"). */

/* One detail of an entry: the entry's number, the detail's index in the body's list of hashes, and the bytes that the hash there covers. */
struct record_detail {
	uint64_t seq, place;
	uint8_t salt[RECORD_SALT];
	uint8_t *data;
	size_t len; /* at most RECORD_DETAIL_MAX */
};

struct json *record_json_detail(const struct record_detail *d);
/* The caller frees out->data. ERR_INVALID names what is wrong; *out is then all zero. */
ERR_MUST_USE enum err record_json_detail_read(
    struct record_detail *out, const struct json *v, struct why *why);

/* link: RECORD_LEN bytes of a valid entry; body: the body's text, zero-terminated; details: an array of record_json_detail, which the
 * result takes over, or NULL. */
struct json *record_json_entry(const uint8_t *link, const char *body, struct json *details);
/* Takes an entry's JSON apart. *body and *details (NULL if there are none) live as long as v. ERR_INVALID; the bytes of `link` are not
 * checked. */
ERR_MUST_USE enum err record_json_entry_read(const struct json *v, uint8_t link[RECORD_LEN],
    const char **body, const struct json **details, struct why *why);

#endif
