#include "link_mpi.h"

#include <stdlib.h>
#include <string.h>

#include <mpi.h>

struct world_end {
	struct link link; /* first */
	MPI_Comm comm;
};

/* What a message keeps of MPI in link_message.handle. */
struct under_way {
	MPI_Request request;
	MPI_Datatype type; /* its head and its body */
};
_Static_assert(sizeof(struct under_way) <= sizeof(((struct link_message *)0)->handle),
    "MPI's handles are too long");

static struct under_way
handle_of(const struct link_message *m)
{
	struct under_way u;

	memcpy(&u, m->handle, sizeof(u));
	return u;
}

static enum err
result(int rc)
{
	return rc == MPI_SUCCESS ? ERR_OK : ERR_CLOSED;
}

/* Head and body lie where they lie. */
static int
describe(struct link_message *m, MPI_Datatype *type)
{
	int lengths[2] = {LINK_HEAD, (int)m->room}, parts = m->room > 0 ? 2 : 1;
	MPI_Aint at[2];

	MPI_Get_address(m->head, &at[0]);
	if (parts > 1)
		MPI_Get_address(m->body, &at[1]);
	int rc = MPI_Type_create_hindexed(parts, lengths, at, MPI_BYTE, type);
	return rc == MPI_SUCCESS ? MPI_Type_commit(type) : rc;
}

static enum err
post(struct link *l, struct link_message *m)
{
	MPI_Comm comm = ((struct world_end *)l)->comm;
	struct under_way u;
	int rc = describe(m, &u.type);

	m->complete = false;
	if (rc != MPI_SUCCESS)
		return ERR_NOMEM;
	if (m->sends)
		rc = MPI_Isend(MPI_BOTTOM, 1, u.type, (int)m->peer, (int)m->tag, comm, &u.request);
	else
		rc = MPI_Irecv(MPI_BOTTOM, 1, u.type, (int)m->peer, (int)m->tag, comm, &u.request);
	memcpy(m->handle, &u, sizeof(u));
	return result(rc);
}

static enum err
test(struct link *l, struct link_message *m)
{
	struct under_way u = handle_of(m);
	MPI_Status status;
	int there = 0, bytes = 0;

	(void)l;
	enum err e = result(MPI_Test(&u.request, &there, &status));
	if (e || !there) {
		memcpy(m->handle, &u, sizeof(u));
		return e ? e : ERR_AGAIN;
	}
	MPI_Type_free(&u.type);
	if (m->sends)
		return ERR_OK;
	if (MPI_Get_elements(&status, MPI_BYTE, &bytes) != MPI_SUCCESS || bytes < LINK_HEAD)
		return ERR_CORRUPT;
	m->got = (size_t)bytes - LINK_HEAD;
	return ERR_OK;
}

static void
listen_to(struct link *l, void (*wake)(void *context), void *context)
{
	(void)l;
	(void)wake;
	(void)context;
}

static void
leave(struct link *l)
{
	(void)l;
	MPI_Finalize();
}

static void
end_world(struct link *l)
{
	MPI_Abort(((struct world_end *)l)->comm, 1);
}

/* What Open MPI calls this world, 4 and 5. */
static uint32_t
world_of(void)
{
	const char *name = getenv("PMIX_NAMESPACE");
	uint32_t h = 0x811c9dc5u;

	if (!name)
		name = getenv("OMPI_MCA_ess_base_jobid");
	for (; name && *name; name++)
		h = (h ^ (unsigned char)*name) * 0x01000193u;
	return h;
}

static enum err
check(const struct world_end *w, struct why *why)
{
	int *most = NULL, set = 0;

	if (w->link.ranks > LINK_RANKS_MAX)
		return err_set(why, ERR_LIMIT, "a site has at most %d ranks", LINK_RANKS_MAX);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, (void *)&most, &set);
	if (!set || (uint32_t)*most < LINK_TAG_MAX)
		return err_set(why, ERR_UNSUPPORTED, "this MPI has too few tags");
	return ERR_OK;
}

enum err
link_mpi_open(struct link **out, void *context, struct why *why)
{
	static const struct link_calls calls = {
	    .post = post, .test = test, .listen = listen_to, .close = leave, .abort = end_world};
	static struct world_end w;
	int level = 0, rank = 0, ranks = 0;

	(void)context;
	if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS ||
	    level < MPI_THREAD_FUNNELED)
		return err_set(why, ERR_UNSUPPORTED, "this MPI knows no threads");
	MPI_Comm_dup(MPI_COMM_WORLD, &w.comm);
	MPI_Comm_set_errhandler(w.comm, MPI_ERRORS_RETURN);
	MPI_Comm_rank(w.comm, &rank);
	MPI_Comm_size(w.comm, &ranks);
	w.link = (struct link){
	    .calls = &calls, .rank = (unsigned)rank, .ranks = (unsigned)ranks, .world = world_of()};
	enum err e = check(&w, why);
	if (e)
		MPI_Finalize();
	else
		*out = &w.link;
	return e;
}
