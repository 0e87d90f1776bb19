#include <stdio.h>
#include <string.h>

#include "conn_inside.h"
#include "hex.h"
#include "registry.h"
#include "services.h"

#define LOG_ID_BYTES 8 /* as in device=... of other lines */

void
conn_claim(const struct conn *c, struct conn_claim *out)
{
	const char *text = c->has_cert ? c->cert.common_name : c->tls ? tls_claimed(c->tls) : "";
	uint8_t id[HASH_LEN];
	struct registry_view view;

	*out = (struct conn_claim){.name = ""};
	if (!hex_decode(id, sizeof(id), text, strlen(text))) {
		snprintf(out->text, sizeof(out->text), "%s", text);
		return;
	}
	hex_encode(out->text, id, LOG_ID_BYTES);
	if (registry_get(c->io->services->registry, id, &view) == ERR_OK)
		memcpy(out->name, view.row.name, sizeof(out->name));
}
