/* How the hosts of a board stand, as a person is shown it above the list. Pure. */
#ifndef ARBE_CLI_BOARD_HOSTS_H
#define ARBE_CLI_BOARD_HOSTS_H

#include "cli/board_view.h"

/* Whether its state is more than that it is on its way. */
bool board_host_is_settled(const struct t3_watch_host *host);

/* Whether its rows are not what it would tell now. */
bool board_host_is_broken(const struct t3_watch_host *host);

/* Draws them from `row` on, in at most a third of the screen below that. Returns the row behind
 * them. */
int board_draw_hosts(const struct board_view *view, struct cells *cells, int row);

#endif
