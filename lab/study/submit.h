#ifndef SUBMIT_H
#define SUBMIT_H
#include <stddef.h>

struct json;

/* `rivulet job submit`. */
int cmd_submit_main(int argc, char **argv);

/* Prints on standard error the warnings in an answer of the coordinator. */
void cmd_submit_say(const struct json *answer);
/* Prints on standard error what the submitter of a document should know, and the warnings of the coordinator about the job. */
void cmd_submit_warn(const char *text, size_t len, const struct json *job);

#endif
