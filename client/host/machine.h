#ifndef MACHINE_H
#define MACHINE_H
#include <stdbool.h>
#include <stdint.h>

/* What the device reports about its machine: enough to notice a copied home, a wrong clock and a full disk. */

#define MACHINE_ID_FILE "/etc/machine-id"
#define MACHINE_HEX 65

/* The hash that stands for this machine (wire/FORMAT.md), of the first line of $RIVULET_MACHINE_ID_FILE or MACHINE_ID_FILE;
 * "" if there is none. */
void machine_id(char out[MACHINE_HEX]);
/* Bytes that this user may still write on the file system of `path`. False if not known. */
bool machine_disk_free(const char *path, uint64_t *bytes);
/* The wall clock in Unix ms; 0 if it stands before 1970. */
uint64_t machine_time_ms(void);

#endif
