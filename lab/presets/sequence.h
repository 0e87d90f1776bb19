#ifndef SEQUENCE_H
#define SEQUENCE_H
#include "maker.h"

/* Presets for texts and for rows of numbers; preset.c lists the settings that each reads. */
void sequence_char_lstm(struct maker *m);
void sequence_gpt(struct maker *m);
void sequence_autoencoder(struct maker *m);

#endif
