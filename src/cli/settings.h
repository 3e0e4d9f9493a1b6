/* The settings of `arbe streams` and `arbe serve`: one table of flags, where their values come
 * from, and what they make of a server's configuration. Texts borrow from the arguments, the
 * environment or settings_sources. */
#ifndef ARBE_CLI_SETTINGS_H
#define ARBE_CLI_SETTINGS_H

#include "base/logger.h"
#include "cli/flags.h"
#include "serve/config.h"

/* Whose settings: the second has all of the first, and more. */
enum settings_program {
    SETTINGS_STREAMS,
    SETTINGS_SERVE,
};

struct settings {
    enum settings_program program;
    const char *config;
    const char *listen;
    const char *data;
    const char *secret_file;
    const char *public_url;
    const char *cors_origin;
    const char *log_file;
    uint64_t durability; /* an enum durability: the choices stand in its order */
    uint64_t log_format; /* an enum logger_format, likewise */
    uint64_t log_level;  /* an enum logger_level, likewise */
    uint64_t insecure;
    uint64_t webhooks_allow_loopback;
    uint64_t print_config;
    uint64_t workers;     /* 0: as many as there are cores */
    uint64_t connections; /* 0: what the descriptors allow */
    uint64_t long_poll_timeout_ms;
    uint64_t sse_lifetime_ms;
    uint64_t sse_heartbeat_ms;
    uint64_t read_page_bytes;
    uint64_t body_bytes_max;
    uint64_t wal_segment_bytes;
    uint64_t checkpoint_bytes;
    uint64_t checkpoint_interval_ms;
    struct serve_limits limits;
    const char *streams_url; /* SETTINGS_SERVE; NULL: threads' streams are this server's */
    const char *streams_secret_file;
    struct flag_list t3; /* SETTINGS_SERVE, as the next; T3 hosts to watch */
    const char *t3_hosts;
};

/* What the settings came from. Zeroed to begin with. */
struct settings_sources {
    char *file;                  /* owned; NULL: no configuration file */
    struct flag_origin *origins; /* owned; of each flag */
};

/* Prints the help of all flags. */
void settings_print_help(enum settings_program program, FILE *out);

/* Fills the settings of `settings->program` from all sources and checks them. ERR_INVALID:
 * something is set wrongly; ERR_IO, ERR_NOMEM; each with a sentence. `sources` is to be finished
 * either way. */
int settings_load(struct settings *settings, struct settings_sources *sources, int argc,
                  char **argv, struct errmsg *msg) MUST_USE;

/* Frees what settings_load made; the settings are then of no use. */
void settings_finish(struct settings_sources *sources);

/* How many connections there may be: one descriptor each; packs keep some open, but give way where
 * there are few. ERR_INVALID with a sentence. */
int settings_choose_connections(const struct settings *settings, uint32_t *ret_count,
                                struct errmsg *msg) MUST_USE;

/* What the settings say of a server, but for the secret, connections and the public URL. */
void settings_fill(const struct settings *settings, struct serve_config *config);

/* Prints the settings in force as a configuration file, each with where it comes from. False: it
 * could not be written. */
bool settings_print(const struct settings *settings, const struct settings_sources *sources,
                    FILE *out) MUST_USE;

/* Logs one line with all that is set, by default or otherwise. The secret itself is no setting. */
void settings_log(const struct settings *settings, const struct logger *logger);

/* Says in `msg` which flag differs between `running` and `now` though it takes a restart, the first
 * one if there are several; nothing otherwise. */
void settings_tell_restart(const struct settings *running, const struct settings *now,
                           struct errmsg *msg);

#endif
