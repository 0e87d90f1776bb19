#ifndef RECIPE_INSIDE_H
#define RECIPE_INSIDE_H
#include "recipe.h"

/*
 * The parts of recipe_parse, each in a file of its own. Within wire/ only. Each reads its key of the document `doc`
 * into *out; errors stick in the reader. What they allocate hangs in *out, which recipe_deinit frees.
 */

/* Limits of numbers in a recipe; see FORMAT.md. */
#define RECIPE_SHAPE_MAX 65536
#define RECIPE_INPUT_MAX (1u << 24)
#define RECIPE_CHANNELS_MAX 16
#define RECIPE_BATCH_MAX (1u << 20)
#define RECIPE_ACCUMULATE_MAX 65536
#define RECIPE_GROUPS_MAX 1024
#define RECIPE_EPOCHS_MAX 1000000
#define RECIPE_SECONDS_MAX 1e7
#define RECIPE_ROUNDS_MAX 1000000000
#define RECIPE_VARIATES_MAX 65536
#define RECIPE_EVALUATE_MIN 0.1
#define RECIPE_EVALUATE_MAX 3600.0
#define RECIPE_EVALUATE_COORDINATOR 60.0
#define RECIPE_EVALUATE_PROGRAM 300.0
#define RECIPE_SHARE_MAX 0.999 /* of dropout, validation and momentum: below 1 in f32 as well */

/* For unknown keys of a job document: which one is meant. */
const struct field_synonym *recipe_synonym_table(void);

/* "data". After the model: a network needs a shape, cross-entropy needs classes. */
void recipe_data_read(struct recipe *out, struct field *doc);
/* "local". After the trainer: the built-in one needs a learning rate. */
void recipe_local_read(struct recipe *out, struct field *doc);
/* Says that no codec bears the name, and which there are. */
void recipe_upload_no_codec(struct field *at, const char *key);
/* "upload". */
void recipe_upload_read(struct recipe *out, struct field *doc);
/* What "local.control_variates" cannot stand beside. After all else. */
void recipe_local_check(const struct recipe *r, struct field *doc);
/* "schedule", of a local or a server optimizer. */
void recipe_schedule_read(struct schedule_spec *out, struct field *parent);

#endif
