#ifndef LINK_MPI_H
#define LINK_MPI_H
#include "link.h"

/* The world of processes that mpirun started this one in, by MPI-3.1. The thread that opens the link makes all calls. A program opens it
 * once. */
ERR_MUST_USE enum err link_mpi_open(struct link **out, void *context, struct why *why);

#endif
