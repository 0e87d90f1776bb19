#ifndef FIGURE_SET_H
#define FIGURE_SET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct field;

/*
 * Which figures a job asks for beyond loss and accuracy (`evaluate.figures`). They travel as counts in the signed report of a device,
 * so a job whose counts might not fit there is refused when it is submitted.
 */
#define FIGURE_SET_TOPS_MAX 4
#define FIGURE_SET_TOP_MAX 100 /* the largest k of "topK" */
/* The most outputs of one example that a device may report where the coordinator does not know the model (a job without layers). */
#define FIGURE_SET_OUTPUTS_MAX (1u << 20)
/* The most bytes of a report's 16 KiB that counts may take; the rest is for loss, accuracy and own metrics. */
#define FIGURE_SET_BYTES_MAX 14336

struct figure_set {
	bool classes; /* per class: recall, precision, F1 */
	bool confusion;
	bool regression; /* MAE and R2 */
	uint64_t
	    outputs; /* with regression: numbers that the model predicts of an example; 0: not known */
	uint64_t labels; /* of an example, at most; 0: one */
	/* Some labels may not count in the loss, and a device of an older version does not report how many did. */
	bool skips;
	bool auc; /* of two classes */
	uint32_t tops[FIGURE_SET_TOPS_MAX]; /* k of each top-k, rising */
	size_t top_count;
};

bool figure_set_any(const struct figure_set *w);
/* Reads the member "figures" of `evaluate`, an array of words; an absent one asks for no figures. */
void figure_set_read(struct figure_set *out, struct field *evaluate);
/* The most bytes that the counts of one device take as JSON, with so many classes and examples at most. */
uint64_t figure_set_bytes(const struct figure_set *w, uint64_t classes, uint64_t examples);
/* Sets an error at "figures" of `evaluate` if these figures do not go with so many classes, or their counts not into a report. */
void figure_set_check(const struct figure_set *w, struct field *evaluate, uint64_t classes);

#endif
