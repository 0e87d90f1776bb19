#ifndef SUBMIT_H
#define SUBMIT_H
#include <stddef.h>

struct json;

/* `rivulet job submit`. */
int cmd_submit_main(int argc, char **argv);

/* On standard error, the warnings in an answer of the coordinator. */
void cmd_submit_say(const struct json *answer);
/* On standard error, what its submitter should know of a document, and what the coordinator says of the job. */
void cmd_submit_warn(const char *text, size_t len, const struct json *job);

#endif
