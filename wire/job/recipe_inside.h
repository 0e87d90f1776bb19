#ifndef RECIPE_INSIDE_H
#define RECIPE_INSIDE_H
#include "recipe.h"

/*
 * The parts of recipe_parse, each in a file of its own. Within wire/ only. Each part reads its key of the document `doc`
 * into *out; errors stick in the reader. Memory that a part allocates belongs to *out; recipe_deinit frees it.
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

/* The table of unknown keys that people write into a job document, with the keys that they mean. */
const struct field_synonym *recipe_synonym_table(void);

/* Reads "data"; called after the model, for a network needs a shape and cross-entropy needs classes. */
void recipe_data_read(struct recipe *out, struct field *doc);
/* Reads "local"; called after the trainer, for the built-in trainer needs a learning rate. */
void recipe_local_read(struct recipe *out, struct field *doc);
/* Sets the error that no codec has this name; the message lists all codecs. */
void recipe_upload_no_codec(struct field *at, const char *key);
/* Reads "upload". */
void recipe_upload_read(struct recipe *out, struct field *doc);
/* Sets an error for what "local.control_variates" cannot be combined with; called after all else was read. */
void recipe_local_check(const struct recipe *r, struct field *doc);
/* Reads "schedule" of a local or a server optimizer. */
void recipe_schedule_read(struct schedule_spec *out, struct field *parent);

#endif
