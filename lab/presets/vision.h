#ifndef VISION_H
#define VISION_H
#include "maker.h"

/* Presets for pictures and spectra; preset.c lists the settings that each reads. */
void vision_resnet18(struct maker *m);
void vision_resnet20(struct maker *m);
void vision_mobilenet(struct maker *m);
void vision_ds_cnn(struct maker *m);

#endif
