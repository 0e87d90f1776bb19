#ifndef CHECK_INSIDE_H
#define CHECK_INSIDE_H
#include "check.h"

/* The parts of check_run. Each reports what it finds and repairs what it may. */

/* The first part: log, database, and rows against each other; opens c->db and fills c->rows. */
void check_rows_run(struct check *c);
void check_rows_deinit(struct check_rows *rows);
/* Columns of rows against what proves them: signatures, hashes, the audit log. check_proofs_begin loads the keys before rows are read,
 * check_proofs_end says after rows and keys which key did not make the objects. */
void check_proofs_begin(struct check *c);
void check_proofs_end(struct check *c);
/* Where an accepted delta's row is. */
struct check_row {
	const char *where;
	bool open; /* the delta's round is open */
	bool proved; /* the row matches a checksum of its own */
	bool evaluates; /* the row is an evaluator's report, of the table `evaluation` */
};
/* The fault of an accepted delta or report, or of a manifest, or of a round; NULL if there is none. */
const char *check_proofs_delta(struct check *c, const struct store_accept *a,
    const struct manifest *m, const struct check_row *row);
const char *check_proofs_manifest(
    const struct check *c, const uint8_t manifest[MANIFEST_LEN], const struct manifest *m);
const char *check_proofs_round(struct check *c, const struct store_round *r);
ERR_MUST_USE enum err check_proofs_devices(struct check *c);
/* keys/: there, readable by the owner only, each key with its certificate, dates; receipts and tasks made with them. */
void check_keys_run(struct check *c);
/* models/: rows against files, states against open rounds, what no row knows. */
void check_models_run(struct check *c);
/* spool/ and kept/: deltas against their manifests, accepted ones of open rounds against their rows, what no row knows. */
void check_spool_run(struct check *c);
/* lost/: reports files that were set aside, and removes old ones with delete_lost. */
void check_lost_run(struct check *c);
/* The audit chain: numbers, links, bodies, signatures, and the details that were not erased. */
void check_audit_run(struct check *c);
/* The directory itself: folders, permissions, owners, leftovers; a copy against its MANIFEST.json. */
void check_tree_run(struct check *c);

#endif
