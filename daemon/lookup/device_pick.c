#include "device_pick.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "clock.h"
#include "exchange.h"
#include "hex.h"
#include "json.h"
#include "problem.h"
#include "registry.h"

/* --- reading */

/* *out: the text `name` of the query, "" without one. False: it is empty or too long. */
static bool
read_text(struct exchange *x, const char *name, char *out, size_t room)
{
	if (!http_query(&x->request, name, out, room))
		out[0] = '\0';
	else if (!out[0])
		exchange_problem(
		    x, PROBLEM_BAD_REQUEST, "%s wants a word of at most %zu bytes", name, room - 1);
	return !x->response.status;
}

static bool
read_state(struct exchange *x, struct device_pick *p)
{
	char word[16];

	if (!http_query(&x->request, "state", word, sizeof(word)))
		return true;
	p->state = states_device_find(word);
	if (!p->state)
		exchange_problem(
		    x, PROBLEM_BAD_REQUEST, "state is active, suspended, revoked or left");
	return p->state;
}

/* Reads one "k=v". */
static bool
add_label(struct device_pick *p, const char *item)
{
	const char *eq = strchr(item, '=');
	size_t key = eq ? (size_t)(eq - item) : 0;

	if (key == 0 || key >= sizeof(p->where->key) || strlen(eq + 1) >= sizeof(p->where->value))
		return false;
	memcpy(p->where[p->where_count].key, item, key);
	strcpy(p->where[p->where_count++].value, eq + 1);
	return true;
}

static bool
read_where(struct exchange *x, struct device_pick *p)
{
	char item[2 * RECIPE_NAME_MAX + 1];

	for (size_t n = 0; http_query_item(&x->request, "where", n, item, sizeof(item)); n++) {
		if (n == DEVICE_PICK_LABELS) {
			exchange_problem(x, PROBLEM_BAD_REQUEST, "where names more than %d labels",
			    DEVICE_PICK_LABELS);
			return false;
		}
		if (!add_label(p, item)) {
			exchange_problem(x, PROBLEM_BAD_REQUEST,
			    "where wants key=value, several with commas, each of at most %d bytes",
			    RECIPE_NAME_MAX - 1);
			return false;
		}
	}
	return true;
}

static bool
read_limit(struct exchange *x, struct device_pick *p)
{
	if (!exchange_number(x, "limit", DEVICE_PICK_PAGE, &p->left))
		return false;
	if (p->left == 0)
		exchange_problem(x, PROBLEM_BAD_REQUEST, "limit must be a number from 1 to %d",
		    DEVICE_PICK_PAGE);
	return p->left > 0;
}

/* The page begins behind `after`, whether there is such a device or not. */
static bool
read_after(struct exchange *x, struct device_pick *p)
{
	char text[2 * sizeof(p->from) + 1];

	if (!http_query(&x->request, "after", text, sizeof(text)))
		return true;
	if (!hex_decode(p->from, sizeof(p->from), text, strlen(text))) {
		exchange_problem(x, PROBLEM_BAD_REQUEST, "after is the id of a device, 64 digits");
		return false;
	}
	size_t i = sizeof(p->from);
	while (i > 0 && ++p->from[i - 1] == 0)
		i--;
	p->none = i == 0;
	return true;
}

bool
device_pick_read(struct exchange *x, struct device_pick *out)
{
	char word[24];

	*out = (struct device_pick){.left = UINT64_MAX, .now = clock_wall()};
	out->silent = http_query(&x->request, "silent_s", word, sizeof(word));
	return read_limit(x, out) && read_after(x, out) && read_where(x, out) &&
	    read_state(x, out) && read_text(x, "reason", out->reason, sizeof(out->reason)) &&
	    read_text(x, "agent", out->agent, sizeof(out->agent)) &&
	    exchange_number(x, "silent_s", INT64_MAX / 1000, &out->silent_s);
}

/* --- fitting */

/* Is it this version, or one that begins so: "1.1" is "1.1.0+15.g8904a80", and not "1.10"? */
static bool
is_agent(const char *agent, const char *version)
{
	size_t len = strlen(version);

	return strncmp(agent, version, len) == 0 && !isalnum((unsigned char)agent[len]);
}

static bool
is_silent(const struct device_pick *p, double last_contact)
{
	return isnan(last_contact) || p->now - last_contact >= (double)p->silent_s;
}

static bool
has_labels(const struct device_pick *p, const char *labels)
{
	struct json *v = NULL;
	bool has = p->where_count == 0 || json_parse(&v, labels, strlen(labels), NULL) == ERR_OK;

	for (size_t i = 0; has && i < p->where_count; i++) {
		const char *value = json_string(json_get(v, p->where[i].key));
		has = value && strcmp(value, p->where[i].value) == 0;
	}
	json_free(v);
	return has;
}

bool
device_pick_fits(const struct device_pick *p, const struct registry_view *d)
{
	const char *reason = d->locked_out ? problem_word(d->locked_out) : d->seen.reason;

	return (!p->state || d->row.state == p->state) &&
	    (!p->reason[0] || strcmp(reason, p->reason) == 0) &&
	    (!p->agent[0] || is_agent(d->seen.agent, p->agent)) &&
	    (!p->silent || is_silent(p, d->seen.last_contact)) && has_labels(p, d->row.labels);
}
