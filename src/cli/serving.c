/* The settings, then the server, and what SIGHUP reloads of them. */
#include "cli/serving.h"

#include "cli/command.h"
#include "cli/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool wants_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

/* A public URL without the slashes at its end, since paths begin with one. */
static void cut_slashes(char *url)
{
    size_t len = strlen(url);

    while (len > 0 && url[len - 1] == '/') {
        url[--len] = '\0';
    }
}

/* A problem with how the server was asked for. */
static int usage(const struct serving *serving, const struct errmsg *msg)
{
    (void)fprintf(stderr, "%s: %s\n", serving->name, msg->text);
    return COMMAND_USAGE;
}

static int failed(const struct serving *serving, const struct errmsg *msg)
{
    (void)fprintf(stderr, "%s: %s\n", serving->name, msg->text);
    return COMMAND_FAILED;
}

/* A running server's command: all that a reload needs. */
struct command_line {
    int argc;
    char **argv;
    const struct settings *running;
    const struct serving *serving;
    struct logger *logger;         /* the server's */
    int log_fd;                    /* of log_file, or standard error */
    char secret[SECRET_BYTES_MAX]; /* as last read */
};

static int open_log(const char *path, int *ret_fd, struct errmsg *msg)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);

    if (fd < 0) {
        return err_set(msg, ERR_IO, "cannot open the log file %.100s: %s", path, strerror(errno));
    }
    *ret_fd = fd;
    return 0;
}

/* The file of that name takes the place of the one that was open, for all threads at once. */
static int reopen_log(const struct command_line *line, struct errmsg *msg)
{
    int fd = -1;

    if (line->running->log_file == NULL) {
        return 0;
    }
    int code = open_log(line->running->log_file, &fd, msg);

    if (code == 0) {
        if (dup3(fd, line->log_fd, O_CLOEXEC) < 0) {
            code = err_set(msg, ERR_IO, "cannot open the log file anew: %s", strerror(errno));
        }
        (void)close(fd); /* the other one stands for the file */
    }
    return code;
}

static int read_tunables(struct command_line *line, const struct settings *settings,
                         struct serve_tunables *ret_tunables, struct errmsg *msg)
{
    *ret_tunables = (struct serve_tunables){.limits = settings->limits};
    int code = settings_choose_connections(settings, &ret_tunables->connection_count_max, msg);

    if (code == 0 && settings->secret_file != NULL) {
        code = secret_read(settings->secret_file, line->secret, &ret_tunables->secret, msg);
    }
    return code;
}

static int reload(void *context, struct serve_tunables *ret_tunables, struct errmsg *msg)
{
    struct command_line *line = context;
    struct settings settings = {.program = line->running->program};
    struct settings_sources sources = {.file = NULL};
    int code = reopen_log(line, msg);

    if (code == 0) {
        code = settings_load(&settings, &sources, line->argc, line->argv, msg);
    }
    /* Answers are marked as public or private from the start on. */
    if (code == 0 && (settings.secret_file == NULL) != (line->running->secret_file == NULL)) {
        code = err_set(msg, ERR_INVALID,
                       "secret-file: whether there is a secret takes a restart to change");
    }
    if (code == 0) {
        code = read_tunables(line, &settings, ret_tunables, msg);
    }
    if (code == 0) {
        logger_set_level(line->logger, (enum logger_level)settings.log_level);
        settings_tell_restart(line->running, &settings, msg);
    }
    settings_finish(&sources);
    return code;
}

/* The log is told, in its file and its format; whoever started the server reads standard error. */
static int failed_serving(const struct command_line *line, const struct errmsg *msg)
{
    bool to_file = line->running->log_file != NULL;
    bool as_text = line->logger->format == LOGGER_TEXT;

    if (to_file || !as_text) {
        logger_line(line->logger, LOGGER_ERROR, "%s", msg->text);
    }
    return to_file || as_text ? failed(line->serving, msg) : COMMAND_FAILED;
}

static int serve(struct command_line *line, struct serve_config *config, struct errmsg *msg)
{
    char url[1024] = "";

    if (line->running->public_url != NULL) {
        (void)snprintf(url, sizeof(url), "%s", line->running->public_url);
        cut_slashes(url);
    }
    config->public_url = url;
    config->reload = reload;
    config->reload_context = line;
    settings_fill(line->running, config);
    config->logger.fd = line->log_fd;
    line->logger = &config->logger;
    settings_log(line->running, &config->logger);
    int code = line->serving->run(line->running, config, msg);

    if (code == 0) {
        return COMMAND_GOOD;
    }
    return msg->text[0] == '\0' ? COMMAND_FAILED : failed_serving(line, msg);
}

/* What is wrong with how the server was asked for is told apart from a broken world. */
static int refused(const struct serving *serving, int code, const struct errmsg *msg)
{
    return code == ERR_INVALID ? usage(serving, msg) : failed(serving, msg);
}

static int with_settings(struct command_line *line, const struct settings_sources *sources)
{
    struct serve_config config = {.listen = NULL};
    struct errmsg msg = {{0}};

    if (settings_choose_connections(line->running, &config.tunables.connection_count_max, &msg) !=
        0) {
        return usage(line->serving, &msg);
    }
    int code = line->serving->check == NULL ? 0 : line->serving->check(line->running, &msg);

    if (code != 0) {
        return refused(line->serving, code, &msg);
    }
    if (line->running->print_config) {
        return settings_print(line->running, sources, stdout) ? COMMAND_GOOD : COMMAND_FAILED;
    }
    if (read_tunables(line, line->running, &config.tunables, &msg) != 0 ||
        (line->running->log_file != NULL &&
         open_log(line->running->log_file, &line->log_fd, &msg) != 0)) {
        return failed(line->serving, &msg);
    }
    int ended = serve(line, &config, &msg);

    if (line->running->log_file != NULL) {
        (void)close(line->log_fd); /* all lines are written */
    }
    return ended;
}

int serving_run(const struct serving *serving, int argc, char **argv)
{
    struct settings settings = {.program = serving->program};
    struct settings_sources sources = {.file = NULL};
    struct command_line line = {.argc = argc,
                                .argv = argv,
                                .running = &settings,
                                .serving = serving,
                                .log_fd = STDERR_FILENO};
    struct errmsg msg = {{0}};

    if (wants_help(argc, argv)) {
        serving->print_help();
        return fflush(stdout) == 0 ? COMMAND_GOOD : COMMAND_FAILED;
    }
    int code = settings_load(&settings, &sources, argc, argv, &msg);
    int ended = code == ERR_IO || code == ERR_NOMEM ? failed(serving, &msg)
                : code != 0                         ? usage(serving, &msg)
                                                    : with_settings(&line, &sources);

    settings_finish(&sources);
    return ended;
}
