#ifndef SITE_OFFER_H
#define SITE_OFFER_H
struct site;

/* Prints what the site can do, as an agent asks a program (docs/devices.md); returns an exit status. */
int site_offer_print(const struct site *site);

#endif
