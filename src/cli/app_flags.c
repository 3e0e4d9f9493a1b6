/* The flags of every command of the API. */
#include "cli/app_flags.h"

#include "base/limits.h"

const struct flag app_shared_flags[] = {
    TEXT_FLAG("url", "URL", "server (default: that of the login, or " APP_URL_DEFAULT ")", url),
    TEXT_FLAG("ca-file", "FILE", "certificates to trust instead of the system's", ca_file),
    {"retries", "N", NULL, "times to try again (default: 3, reading live no end)", NULL, FLAG_COUNT,
     AT(retries), 0, 1000000},
    {"timeout", "TIME", "30s", "for an answer that is not live", NULL, FLAG_DURATION,
     AT(timeout_ms), 1, 24ull * 3600 * 1000},
    SWITCH_FLAG("json", "what the API answers, one object a line; errors likewise on stderr", json),
};

const size_t app_shared_flag_count = ARRAY_COUNT(app_shared_flags);

const char app_group_end[] =
    "HOUSE, AGENT and THREAD are references: an id, 8 or more characters of its beginning, a name\n"
    "that only one has, or an agent's @handle; \"house\" is the selected house, \"me\" the "
    "caller.\n\n"
    "arbe auth login keeps server and key; ARBE_URL and ARBE_API_KEY are stronger.\n\n"
    "Exit codes: 0 good, 1 it could not be done, 2 wrong usage, 3 no such thing, 4 conflict,\n"
    "6 not allowed, 7 no answer: later perhaps, 130 Ctrl-C.\n";
