#ifndef VISION_H
#define VISION_H
#include "maker.h"

/* Networks of pictures and spectra; the settings that each reads stand in preset.c. */
void vision_resnet18(struct maker *m);
void vision_resnet20(struct maker *m);
void vision_mobilenet(struct maker *m);
void vision_ds_cnn(struct maker *m);

#endif
