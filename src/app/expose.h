/* The metrics of the application, behind the server's own; docs/operations.md describes each. */
#ifndef ARBE_APP_EXPOSE_H
#define ARBE_APP_EXPOSE_H

struct app;
struct exposition;

/* Writes them. On a worker; takes locks that are held for moments, and asks neither the records nor
 * streams. */
void app_expose(struct app *app, struct exposition *e);

#endif
