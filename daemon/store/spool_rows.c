#include "store_inside.h"

enum statement { ACCEPT_DROP = STORE_SPOOL_STATEMENTS, STATEMENTS_END };
_Static_assert((int)STATEMENTS_END <= (int)STORE_DELETE_STATEMENTS,
    "the cache has a place for each statement");

enum err
store_accept_drop(
    struct store_db *db, const uint8_t job[16], uint64_t round, const uint8_t device[32])
{
	struct store_query q = store_query_begin(
	    db, ACCEPT_DROP, "DELETE FROM accept WHERE job = ? AND round = ? AND device = ?");

	store_query_blob(&q, job, 16);
	store_query_unsigned(&q, round);
	store_query_blob(&q, device, 32);
	return store_query_done(&q);
}
