#ifndef RECURRENT_H
#define RECURRENT_H
#include "cpu_inside.h"

/*
 * Recurrent layers on top of each other, each over all steps before the next. Arrays are [example][step][...]. With the gates' weights
 * of input and hidden state, W and U, and their biases:
 *
 *   forward   bias, then sum over inputs of x W, ascending, then sum over the hidden state of h U, ascending
 *   back      through steps, last to first; then over (example, step), ascending, each weight's gradient in one sum
 *
 * What is kept of a step is a row of `row` times the hidden width: gates behind their curves, then what the cell needs; on the way back
 * the row becomes the gradient at the gates.
 */
struct recurrent_step {
	size_t hidden;
	float *row;
	const float *before; /* of the step before; NULL: none */
	const float *h_before; /* NULL: zeros */
	float *h;
	float *scratch; /* `hidden` floats */
	const float *pre; /* of a cell with `apart`: h U and its bias, for all gates */
};

struct recurrent_back {
	size_t hidden;
	float *row;
	const float *before, *h_before;
	float *dh,
	    *dc; /* of h and the cell; become those of the step before, but for what comes through U */
	float *scratch;
};

struct recurrent_cell {
	size_t gates, row;
	bool apart; /* h U is not simply added to x W */
	void (*step)(const struct recurrent_step *s);
	void (*back)(const struct recurrent_back *b);
	/* Which columns of a row, in units of `hidden`, are the gradient at h U of gate 0.., and at the last gate. */
	size_t last_column;
};

enum err recurrent_need(struct layer *l, const struct recurrent_cell *cell);
void recurrent_forward(
    const struct layer *l, const struct backend_pass *p, const struct recurrent_cell *cell);
void recurrent_backward(
    const struct layer *l, const struct backend_pass *p, const struct recurrent_cell *cell);

#endif
