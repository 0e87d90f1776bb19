#ifndef SEQUENCE_H
#define SEQUENCE_H
#include "maker.h"

/* Networks of texts and of rows of numbers; the settings that each reads stand in preset.c. */
void sequence_char_lstm(struct maker *m);
void sequence_gpt(struct maker *m);
void sequence_autoencoder(struct maker *m);

#endif
