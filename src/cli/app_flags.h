/* What the groups of commands of the API have in common: flags of every command, and what stands
 * at the end of their help. To be used within tables. */
#ifndef ARBE_CLI_APP_FLAGS_H
#define ARBE_CLI_APP_FLAGS_H

#include "cli/app_call.h"

#define AT(field) offsetof(struct app_settings, field)

/* The words of a row that say what runs it, and its flags. */
#define RUN(function)   \
    {                   \
        .app = function \
    }
#define FLAGS(table) table, ARRAY_COUNT(table)
#define NO_FLAGS     NULL, 0

#define TEXT_FLAG(name, hint, help, field)                       \
    {                                                            \
        name, hint, NULL, help, NULL, FLAG_TEXT, AT(field), 0, 0 \
    }
#define SWITCH_FLAG(name, help, field)                             \
    {                                                              \
        name, NULL, NULL, help, NULL, FLAG_SWITCH, AT(field), 0, 0 \
    }
#define HOUSE_FLAG TEXT_FLAG("house", "HOUSE", "instead of the selected one", house)
#define LIMIT_FLAG                                                                            \
    {                                                                                         \
        "limit", "N", NULL, "at most so many (default: all)", NULL, FLAG_COUNT, AT(limit), 1, \
            1000000000                                                                        \
    }

extern const struct flag app_shared_flags[];
extern const size_t app_shared_flag_count;
extern const char app_group_end[];

#endif
