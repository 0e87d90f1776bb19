#ifndef VERSION_H
#define VERSION_H

/* The release: what rivulet_version() and rivulet.pc say. Python's __version__ is the same. */
#define VERSION_RELEASE "1.1.0"

/* Which build this is: the release, the number of commits up to the built one and the commit, as "1.1.0+1015.g8904a80", with ".dirty" at
 * the end if the tree was changed since. Later builds sort behind earlier ones. At most 31 bytes: what an offer's "agent" holds. */
const char *version_text(void);

#endif
