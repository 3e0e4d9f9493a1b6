/* arbe serve: threads, their API and their streams in one process. */
#include "cli/command.h"
#include "cli/secret.h"
#include "cli/serving.h"
#include "cli/t3_hosts.h"

#include "app/app.h"

static void print_help(void)
{
    (void)printf(
        "Usage: arbe serve [FLAG...]\n\n"
        "Serves threads for people and agents: their API under /api, and durable streams under\n"
        "/v1/stream/, from one data directory. The first start makes an owner and prints its\n"
        "key, once. SIGTERM ends it cleanly. A flag may also stand in the environment, --data as\n"
        "ARBE_DATA, or in the file that --config names, as data = DIR; the command line is\n"
        "stronger than the environment, which is stronger than the file. A SIZE is bytes or ends\n"
        "in KiB, MiB or GiB; a TIME ends in ms, s, m or h.\n\n"
        "Streams called arbe-thread-... belong to the threads: without --secret-file nobody\n"
        "reaches them but through /api.\n\n");
    settings_print_help(SETTINGS_SERVE, stdout);
}

static bool tell_key(void *context, const char *owner, const char *house, const char *key)
{
    FILE *out = context;

    return fprintf(out,
                   "This is the first start: \"%s\" owns the house \"%s\", and signs in with this "
                   "key, which is not shown again:\n\n    %s\n\n",
                   owner, house, key) > 0 &&
           fflush(out) == 0;
}

/* Which T3 hosts to watch. The user's own are watched only where the flags say so: everybody who is
 * signed in sees them. */
static int load_hosts(const struct settings *settings, struct t3_hosts *ret_hosts,
                      struct errmsg *msg)
{
    struct t3_hosts_flags flags = {.t3 = settings->t3, .file = settings->t3_hosts};
    char from[128];

    if (settings->t3.origin.source == FLAG_FROM_FILE) {
        (void)snprintf(from, sizeof(from), "%.100s:%u: t3", settings->config,
                       settings->t3.origin.line);
        flags.t3_from = from;
    } else if (settings->t3.origin.source == FLAG_FROM_ENVIRONMENT) {
        flags.t3_from = "ARBE_T3";
    }
    *ret_hosts = (struct t3_hosts){.count = 0};
    return flags.t3.count == 0 && flags.file == NULL ? 0 : t3_hosts_load(&flags, ret_hosts, msg);
}

/* Whether the hosts can be watched; none of them is asked. */
static int check(const struct settings *settings, struct errmsg *msg)
{
    struct t3_watch_options options = {.row = NULL};
    struct t3_watch *watch = NULL;
    struct t3_hosts hosts;

    t3_board_options_init(&options.board);
    int code = load_hosts(settings, &hosts, msg);

    code = code == 0 ? t3_watch_create(&options, &watch, msg) : code;
    code = code == 0 ? t3_hosts_watch(&hosts, watch, msg) : code;
    t3_watch_destroy(watch);
    t3_hosts_finish(&hosts);
    return code;
}

static int run(const struct settings *settings, struct serve_config *config, struct errmsg *msg)
{
    char secret[SECRET_BYTES_MAX];
    struct app_config app_config = {
        .data_dir = config->data_dir,
        .public_url = config->public_url,
        .streams_url = settings->streams_url,
        .logger = &config->logger,
        .tell_key = tell_key,
        .tell_context = stdout,
    };
    struct app *app = NULL;
    struct t3_hosts hosts;
    int code = load_hosts(settings, &hosts, msg);

    if (code == 0 && settings->streams_secret_file != NULL) {
        code = secret_read(settings->streams_secret_file, secret, &app_config.streams_secret, msg);
    }
    code = code == 0 ? app_create(&app_config, &app, msg) : code;
    code = code == 0 ? t3_hosts_watch(&hosts, app_board(app), msg) : code;
    if (code == 0) {
        config->mount = app_mount(app);
        code = server_run(config, stdout, msg);
    }
    app_destroy(app);
    t3_hosts_finish(&hosts);
    explicit_bzero(secret, sizeof(secret));
    return code;
}

int command_serve(int argc, char **argv)
{
    static const struct serving serving = {.name = "arbe serve",
                                           .program = SETTINGS_SERVE,
                                           .print_help = print_help,
                                           .check = check,
                                           .run = run};

    return serving_run(&serving, argc, argv);
}
