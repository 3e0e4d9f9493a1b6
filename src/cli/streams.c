/* arbe streams: the streams alone, and the tools for their data directory. */
#include "cli/command.h"
#include "cli/serving.h"
#include "cli/tool.h"

static void print_help(void)
{
    (void)printf(
        "Usage: arbe streams [FLAG...]\n\n"
        "Serves durable streams under /v1/stream/ from a data directory. SIGTERM ends it\n"
        "cleanly. A flag may also stand in the environment, --data as ARBE_DATA, or in the\n"
        "file that --config names, as data = DIR; the command line is stronger than the\n"
        "environment, which is stronger than the file. A SIZE is bytes or ends in KiB, MiB or\n"
        "GiB; a TIME ends in ms, s, m or h.\n\n");
    settings_print_help(SETTINGS_STREAMS, stdout);
    (void)printf("\nTools for a data directory, each with --help:\n");
    tool_print_all();
}

static int run(const struct settings *settings, struct serve_config *config, struct errmsg *msg)
{
    (void)settings; /* all of it is in the config */
    return server_run(config, stdout, msg);
}

int command_streams(int argc, char **argv)
{
    static const struct serving serving = {
        .name = "arbe streams", .program = SETTINGS_STREAMS, .print_help = print_help, .run = run};

    return argc > 0 && tool_is_named(argv[0]) ? tool_run(argc, argv)
                                              : serving_run(&serving, argc, argv);
}
