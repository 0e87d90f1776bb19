#ifndef CENTRAL_H
#define CENTRAL_H
#include "fold.h"

/*
 * Waits until a program of a named evaluator has measured a round's new model (evaluate.by "program"), or evaluate.deadline_s is over.
 * One thread for all rounds that wait; what they fold takes no memory meanwhile.
 */
struct central;

struct central_wait {
	struct fold *
	    w; /* whose model and its files are written, the model under its name; the figure goes into w->out */
	void (*done)(
	    void *context, void *round); /* on the thread that waits, or within central_begin */
	void *context, *round;
};

ERR_MUST_USE enum err central_new(struct central **out);
/* A report of this very model that a coordinator before this one accepted counts at once. Copies v, whose pointers stay until done is
 * called. */
ERR_MUST_USE enum err central_begin(struct central *c, const struct central_wait *v);
/* Every done has been called after that, without a figure: the program is to end. */
void central_free(struct central *c);

#endif
