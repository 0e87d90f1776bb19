#ifndef RECURRENT_H
#define RECURRENT_H
#include <stdbool.h>
#include <stddef.h>

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
	const float *
	    pre; /* h U, of a cell with `apart` and its bias, for all gates; otherwise NULL without a step before */
};

struct recurrent_back {
	size_t hidden;
	float *row;
	const float *before, *h_before;
	float *dh,
	    *dc; /* of h and the cell; become those of the step before, but for what comes through U */
};

struct recurrent_cell {
	size_t gates, row;
	/* h U is not simply added to x W, and on the way back its last gate has a column of its own, behind the others. */
	bool apart;
	void (*step)(const struct recurrent_step *s);
	void (*back)(const struct recurrent_back *b);
};
extern const struct recurrent_cell lstm_cell, gru_cell;

#endif
