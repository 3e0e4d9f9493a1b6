/* arbe serve: threads, their API and their streams in one process. */
#include "cli/command.h"
#include "cli/secret.h"
#include "cli/serving.h"

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
    int code = 0;

    if (settings->streams_secret_file != NULL) {
        code = secret_read(settings->streams_secret_file, secret, &app_config.streams_secret, msg);
    }
    if (code == 0 && app_create(&app_config, &app) != 0) {
        code = err_set(msg, ERR_NOMEM, "out of memory");
    }
    if (code == 0) {
        config->mount = app_mount(app);
        code = server_run(config, stdout, msg);
    }
    app_destroy(app);
    explicit_bzero(secret, sizeof(secret));
    return code;
}

int command_serve(int argc, char **argv)
{
    static const struct serving serving = {
        .name = "arbe serve", .program = SETTINGS_SERVE, .print_help = print_help, .run = run};

    return serving_run(&serving, argc, argv);
}
