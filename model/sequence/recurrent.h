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
 * A step keeps a row of `row` times the hidden width: the gates after their curves, then what the cell needs; in the backward pass
 * the row becomes the gradient at the gates.
 */
struct recurrent_step {
	size_t hidden;
	float *row;
	const float *before; /* the row of the step before; NULL: none */
	const float *h_before; /* h of the step before; NULL: zeros */
	float *h;
	/* h U for all gates, with its bias if the cell is `apart`; NULL without a step before if it is not. */
	const float *pre;
};

struct recurrent_back {
	size_t hidden;
	float *row;
	const float *before, *h_before;
	/* Gradients of h and of the cell; become those of the step before, without the part that comes through U. */
	float *dh, *dc;
};

struct recurrent_cell {
	size_t gates, row;
	/* h U is not simply added to x W (gru); in the backward pass the last gate of h U has a column of its own, behind the others. */
	bool apart;
	void (*step)(const struct recurrent_step *s);
	void (*back)(const struct recurrent_back *b);
};
extern const struct recurrent_cell lstm_cell, gru_cell;

#endif
