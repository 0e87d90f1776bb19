#include "contact.h"

#include "print.h"

enum err
cmd_contact_note(struct cmd_contact *c, enum err e, const struct why *why)
{
	bool away = e == ERR_CLOSED && c->met;

	if (away && !c->away)
		cmd_print_error("%s; trying again until it answers", why->text);
	if (!e && c->away)
		cmd_print_error("the coordinator answers again");
	c->met = c->met || !e;
	c->away = away;
	return away ? ERR_OK : e;
}
