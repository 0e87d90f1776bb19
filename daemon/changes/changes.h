#ifndef CHANGES_H
#define CHANGES_H

struct exchange;

/* GET /v1/changes?after=N&wait=SECONDS: answers once the counter of changes (jobs/change.h) is not N, or after SECONDS. */
void changes_wait(struct exchange *x);
/* The request is over: its place is another's. */
void changes_drop(struct exchange *x);

#endif
