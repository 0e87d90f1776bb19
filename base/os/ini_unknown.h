#ifndef INI_UNKNOWN_H
#define INI_UNKNOWN_H
#include "ini.h"

/* The message about an unknown key or section: which file it belongs in, or which known one was meant. */
#define INI_UNKNOWN_MAX 160
void ini_unknown_key(char out[INI_UNKNOWN_MAX], const struct ini *ini,
    const struct ini_section *section, const char *name);
/* head: what stands between the brackets. */
void ini_unknown_section(char out[INI_UNKNOWN_MAX], const struct ini *ini, const char *head);

#endif
