/* T3 hosts: what flags and the file say, and which token goes where. */
#include "unit/base/fault.h"

#include "cli/profile.c"
#include "cli/t3_hosts.c"

#include "unit/base/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* A home with a hosts' file and a token in it. */
struct rig {
    char home[64];
    char file[160];
    char token[160];
    struct t3_hosts hosts;
    struct errmsg msg;
};

static void put(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
}

static int rig_begin(void **state)
{
    static struct rig rig;
    char dir[128];

    rig = (struct rig){.home = "/tmp/arbe-t3-hosts-XXXXXX"};
    assert_non_null(mkdtemp(rig.home));
    assert_int_equal(setenv("HOME", rig.home, 1), 0);
    assert_int_equal(unsetenv("XDG_CONFIG_HOME"), 0);
    assert_int_equal(unsetenv(TOKEN_VARIABLE), 0);
    assert_int_equal(unsetenv(FILE_VARIABLE), 0);
    (void)snprintf(dir, sizeof(dir), "%s/.config", rig.home);
    assert_int_equal(mkdir(dir, 0700), 0);
    (void)snprintf(dir, sizeof(dir), "%s/.config/arbe", rig.home);
    assert_int_equal(mkdir(dir, 0700), 0);
    (void)snprintf(rig.file, sizeof(rig.file), "%s/t3", dir);
    (void)snprintf(rig.token, sizeof(rig.token), "%s/mac.token", dir);
    put(rig.token, "tok-mac\n", 0600);
    *state = &rig;
    return 0;
}

static int rig_end(void **state)
{
    struct rig *rig = *state;
    char path[128];

    t3_hosts_finish(&rig->hosts);
    (void)unlink(rig->file); /* not every test has one */
    (void)unlink(rig->token);
    (void)snprintf(path, sizeof(path), "%s/.config/arbe", rig->home);
    assert_int_equal(rmdir(path), 0);
    (void)snprintf(path, sizeof(path), "%s/.config", rig->home);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(rig->home), 0);
    return 0;
}

static int load(struct rig *rig, const char *a, const char *b, bool all)
{
    struct t3_hosts_flags flags = {.all_of_file = all};
    struct t3_hosts hosts = {.list = NULL};

    if (a != NULL) {
        flags.t3.items[flags.t3.count++] = slice_of(a);
    }
    if (b != NULL) {
        flags.t3.items[flags.t3.count++] = slice_of(b);
    }
    int code = t3_hosts_load(&flags, &hosts, &rig->msg);

    t3_hosts_finish(&rig->hosts);
    rig->hosts = hosts;
    return code;
}

static int load_one(struct rig *rig, const char *word)
{
    const struct t3_hosts_flags flags = {.file = NULL};

    return t3_hosts_load_one(word, &flags, &rig->hosts, &rig->msg);
}

static const char *token_of(struct rig *rig, size_t i)
{
    static char token[T3_READER_TOKEN_BYTES];

    assert_int_equal(t3_host_token(&rig->hosts.list[i], token, &rig->msg), 0);
    return token;
}

#define TWO_HOSTS                                                                   \
    "# mine\n[mac]\nurl = http://mac.local:3773\nallow-http = true\n"               \
    "secret-file = mac.token\nca-file = ~/ca.pem\n\n[my-box]\nallow-http = false\n" \
    "url = ws://127.0.0.1:1/ws\n"

/* No file, no flag, no home: no hosts, and nothing wrong. */
static void none_is_good(void **state)
{
    struct rig *rig = *state;

    assert_int_equal(load(rig, NULL, NULL, false), 0);
    assert_int_equal(rig->hosts.count, 0);
    assert_int_equal(unsetenv("HOME"), 0);
    assert_int_equal(load(rig, NULL, NULL, true), 0);
    assert_int_equal(rig->hosts.count, 0);
    assert_int_equal(load(rig, "a=http://h", NULL, true), 0);
    assert_int_equal(rig->hosts.count, 1);
    assert_int_equal(load(rig, "a", NULL, false), ERR_INVALID);
    assert_non_null(strstr(rig->msg.text, "HOME is not set"));
}

/* Without --t3 all of the file, in its order; files are relative to it. */
static void reads_the_file(void **state)
{
    struct rig *rig = *state;
    char ca[128];

    put(rig->file, TWO_HOSTS, 0644);
    assert_int_equal(load(rig, NULL, NULL, false), 0);
    assert_int_equal(rig->hosts.count, 2);
    assert_string_equal(rig->hosts.list[0].label, "mac");
    assert_string_equal(rig->hosts.list[0].url, "http://mac.local:3773");
    assert_string_equal(rig->hosts.list[0].token_file, rig->token);
    (void)snprintf(ca, sizeof(ca), "%s/ca.pem", rig->home);
    assert_string_equal(rig->hosts.list[0].ca_file, ca);
    assert_string_equal(token_of(rig, 0), "tok-mac");
    assert_string_equal(rig->hosts.list[1].label, "my-box");
    assert_null(rig->hosts.list[1].token_file);
    assert_string_equal(token_of(rig, 1), "");
}

/* --t3 comes first, in its order; the rest of the file only if that is wanted. */
static void takes_flags(void **state)
{
    struct rig *rig = *state;

    put(rig->file, TWO_HOSTS, 0644);
    assert_int_equal(load(rig, "new=https://n/ws", "mac", false), 0);
    assert_int_equal(rig->hosts.count, 2);
    assert_string_equal(rig->hosts.list[0].label, "new");
    assert_string_equal(rig->hosts.list[0].url, "https://n/ws");
    assert_string_equal(token_of(rig, 0), "");
    assert_string_equal(rig->hosts.list[1].label, "mac");
    assert_string_equal(token_of(rig, 1), "tok-mac");
    assert_int_equal(load(rig, "new=https://n", "mac", true), 0);
    assert_int_equal(rig->hosts.count, 3);
    assert_string_equal(rig->hosts.list[2].label, "my-box");
}

/* A host of the file may be named with its URL, said in any way, and then has its token; with
 * another URL it is refused, so that the token goes nowhere else. */
static void keeps_tokens_at_their_url(void **state)
{
    struct rig *rig = *state;

    put(rig->file, TWO_HOSTS, 0644);
    assert_int_equal(load(rig, "mac=ws://MAC.local:3773/ws", NULL, false), 0);
    assert_string_equal(token_of(rig, 0), "tok-mac");
    assert_int_equal(load(rig, "mac=http://evil:3773", NULL, false), ERR_INVALID);
    assert_non_null(strstr(rig->msg.text, "--t3: the host \"mac\" has another URL in"));
    assert_int_equal(rig->hosts.count, 0);
    assert_int_equal(load(rig, "other=http://mac.local:3773", NULL, false), 0);
    assert_string_equal(token_of(rig, 0), ""); /* that name has none */
}

/* One word: a URL takes the token of the host that has it, and no other's. */
static void finds_one(void **state)
{
    struct rig *rig = *state;
    struct t3_hosts *h = &rig->hosts;

    put(rig->file, TWO_HOSTS, 0644);
    assert_int_equal(load_one(rig, "mac"), 0);
    assert_string_equal(token_of(rig, 0), "tok-mac");
    t3_hosts_finish(h);
    assert_int_equal(load_one(rig, "ws://mac.local:3773"), 0);
    assert_string_equal(h->list[0].label, "mac");
    assert_string_equal(token_of(rig, 0), "tok-mac");
    t3_hosts_finish(h);
    assert_int_equal(load_one(rig, "http://mac.local:3774/"), 0);
    assert_string_equal(h->list[0].label, "mac.local:3774");
    assert_string_equal(token_of(rig, 0), "");
    t3_hosts_finish(h);
    assert_int_equal(load_one(rig, "x=http://h"), 0);
    assert_string_equal(h->list[0].label, "x");
    assert_int_equal(h->count, 1);
    t3_hosts_finish(h);
    assert_int_equal(load_one(rig, "nobody"), ERR_INVALID);
    assert_non_null(strstr(rig->msg.text, "there is no host \"nobody\" in the hosts' file /tmp/"));
    assert_int_equal(load_one(rig, "http://a:b@h"), ERR_INVALID);
}

/* What --t3 does not take, with the flag's name. */
static void refuses_words(void **state)
{
    struct rig *rig = *state;
    const char *const bad[] = {"",
                               "=http://h",
                               "a=",
                               "a=h",
                               "a=ftp://h",
                               "a/b=http://h",
                               "http://h",
                               "http://h/?a=b",
                               "[a]=http://h",
                               "a b=http://h",
                               "a\n=http://h",
                               "a\xc2\x9b=http://h",
                               "a\xff=http://h"};
    const struct {
        const char *word;
        const char *text;
    } sentences[] = {
        {"http://h:3773", "--t3 takes HOST=URL, such as mac=http://127.0.0.1:3773"},
        {"http://h/?a=b", "--t3 takes HOST=URL, such as mac=http://127.0.0.1:3773"},
        {"x=http://h/?a=b",
         "--t3: \"...\" is no URL for the host \"x\": it must have no \"?\" and nothing "
         "after it: what stands there may be a secret, and a URL is shown"},
        {"mac=", "--t3: \"\" is no URL for the host \"mac\": it must begin with "
                 "http://, https://, ws:// or wss://"},
        {"foo=ftp://x", "--t3: \"ftp://x\" is no URL for the host \"foo\": it must begin with "
                        "http://, https://, ws:// or wss://"},
        {"foo=http://me:word@x", "--t3: \"...\" is no URL for the host \"foo\": it must not hold a "
                                 "user name or a password"},
    };

    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        if (load(rig, bad[i], NULL, false) != ERR_INVALID) {
            fail_msg("\"%s\" was taken", bad[i]);
        }
        assert_ptr_equal(strstr(rig->msg.text, "--t3"), rig->msg.text);
    }
    for (size_t i = 0; i < ARRAY_COUNT(sentences); i++) {
        assert_int_equal(load(rig, sentences[i].word, NULL, false), ERR_INVALID);
        assert_string_equal(rig->msg.text, sentences[i].text);
    }
    assert_int_equal(load(rig, "a=http://h", "a=http://h", false), ERR_INVALID);
    assert_non_null(strstr(rig->msg.text, "named twice"));
}

/* A label has at most 255 bytes. */
static void caps_labels(void **state)
{
    struct rig *rig = *state;
    char word[T3_HOST_BYTES_MAX + 32];

    memset(word, 'x', sizeof(word));
    (void)snprintf(word + T3_HOST_BYTES_MAX, 16, "=http://h");
    assert_int_equal(load(rig, word, NULL, false), 0);
    memset(word, 'x', sizeof(word));
    (void)snprintf(word + T3_HOST_BYTES_MAX + 1, 16, "=http://h");
    assert_int_equal(load(rig, word, NULL, false), ERR_INVALID);
    assert_non_null(strstr(rig->msg.text, "1 to 255 bytes"));
}

/* Lines that say nothing known are told by file and line. */
static void refuses_lines(void **state)
{
    struct rig *rig = *state;
    const char *const bad[][2] = {
        {"url = http://h\n", "t3:1: a host begins with [NAME]"},
        {"[a]\n", "the host \"a\" has no url"},
        {"[a]\nurl = http://h\n[a]\n", "t3:3: there are two hosts \"a\""},
        {"[a]\nurl = http://h\nurl = http://i\n", "t3:3: url stands in this host already"},
        {"[a]\nurl =\n", "t3:2: url needs a value"},
        {"[a]\ntoken = x\n",
         "t3:2: \"token\" is not known; a host has url, secret-file, ca-file and allow-http"},
        {"[a]\nallow-http = yes\n", "t3:2: allow-http is true or false"},
        {"[a]\nallow-http = false\nallow-http = true\n",
         "t3:3: allow-http stands in this host already"},
        {"[a]\nsecret = x\n", "t3:2: a secret has no place here"},
        {"[a]\nurl\n", "t3:2: a line is"},
        {"[a/b]\nurl = http://h\n", "[a/b]: \"a/b\" is no name for a host"},
        {"[a\xe2\x80\xae]\nurl = http://h\n", "is no name for a host"}, /* it turns what follows */
        {"[a]\nurl = mac\n", "[a]: the URL is not good: it must begin with"},
    };

    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        put(rig->file, bad[i][0], 0600);
        assert_int_equal(load(rig, NULL, NULL, false), ERR_INVALID);
        if (strstr(rig->msg.text, bad[i][1]) == NULL) {
            fail_msg("\"%s\" is not in \"%s\"", bad[i][1], rig->msg.text);
        }
    }
}

/* 256 hosts are read, one more is refused. */
static void caps_the_file(void **state)
{
    struct rig *rig = *state;
    char text[20000];
    size_t len = 0;

    for (int i = 0; i < 257; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "[h%d]\nurl = http://h%d\n", i, i);
        if (i >= 255) {
            put(rig->file, text, 0600);
            assert_int_equal(load(rig, NULL, NULL, false), i == 255 ? 0 : ERR_INVALID);
        }
    }
    assert_non_null(strstr(rig->msg.text, "at most 256 hosts"));
}

/* Whoever can write the file can send tokens elsewhere: nobody else may. */
static void refuses_a_file_of_others(void **state)
{
    struct rig *rig = *state;

    put(rig->file, TWO_HOSTS, 0664);
    assert_int_equal(load(rig, NULL, NULL, false), ERR_PERM);
    assert_non_null(strstr(rig->msg.text, "chmod go-w"));
    put(rig->file, TWO_HOSTS, 0602);
    assert_int_equal(load(rig, NULL, NULL, false), ERR_PERM);
}

/* A file that flag or environment names must be there, that of the user need not. */
static void wants_a_named_file(void **state)
{
    struct rig *rig = *state;
    struct t3_hosts_flags flags = {.file = "/nowhere/t3"};

    assert_int_equal(t3_hosts_load(&flags, &rig->hosts, &rig->msg), ERR_IO);
    assert_non_null(strstr(rig->msg.text, "/nowhere/t3"));
    put(rig->file, TWO_HOSTS, 0600);
    flags.file = rig->file;
    assert_int_equal(t3_hosts_load(&flags, &rig->hosts, &rig->msg), 0);
    assert_int_equal(rig->hosts.count, 2);
}

/* The variable is for those who ask for it; what only loads hosts, as arbe serve does, does not
 * heed it. The flag is stronger. */
static void heeds_the_variable_when_asked(void **state)
{
    struct rig *rig = *state;

    put(rig->file, TWO_HOSTS, 0600);
    assert_null(t3_hosts_choose(NULL));
    assert_string_equal(t3_hosts_choose("/x"), "/x");
    assert_int_equal(setenv(FILE_VARIABLE, "/nowhere/other", 1), 0);
    assert_string_equal(t3_hosts_choose(NULL), "/nowhere/other");
    assert_string_equal(t3_hosts_choose("/x"), "/x");
    assert_int_equal(load(rig, NULL, NULL, false), 0);
    assert_int_equal(setenv(FILE_VARIABLE, "", 1), 0);
    assert_null(t3_hosts_choose(NULL));
}

/* No token goes where it can be read on the way, unless section or flag allow it. */
static void keeps_tokens_off_open_ways(void **state)
{
    struct rig *rig = *state;
    struct t3_hosts_flags flags = {.allow_http = 0};

    put(rig->file,
        "[mac]\nurl = http://mac.local:3773\nsecret-file = mac.token\n[bare]\nurl = ws://h\n",
        0600);
    assert_int_equal(load(rig, NULL, NULL, false), ERR_INVALID);
    assert_string_equal(
        rig->msg.text,
        "mac: mac.local:3773 is not encrypted, and its token could be read on the "
        "way: use https, or \"allow-http = true\" in its section of the hosts' file; "
        "arbe board and t3 take --allow-http");
    assert_int_equal(load(rig, "bare", NULL, false), 0); /* it has no token */
    assert_int_equal(load_one(rig, "mac"), ERR_INVALID);
    assert_int_equal(setenv(TOKEN_VARIABLE, "tok-env", 1), 0);
    t3_hosts_finish(&rig->hosts);
    assert_int_equal(load(rig, "bare", NULL, false), ERR_INVALID);
    assert_null(strstr(rig->msg.text, "tok-env"));
    assert_int_equal(load(rig, "new=http://10.0.0.1", NULL, false), ERR_INVALID);
    assert_int_equal(load(rig, "new=http://127.0.0.2", NULL, false), 0);
    assert_int_equal(load(rig, "new=wss://10.0.0.1", NULL, false), 0);
    assert_int_equal(unsetenv(TOKEN_VARIABLE), 0);
    t3_hosts_finish(&rig->hosts);
    flags.allow_http = 1;
    assert_int_equal(t3_hosts_load(&flags, &rig->hosts, &rig->msg), 0);
    assert_int_equal(rig->hosts.count, 2);
}

/* Two names of one server would show each thread twice. */
static void refuses_one_server_twice(void **state)
{
    struct rig *rig = *state;

    assert_int_equal(load(rig, "a=http://h", "b=ws://H:80/ws", false), ERR_INVALID);
    assert_non_null(strstr(rig->msg.text, "the host \"b\" is the same server as \"a\", and each"));
    assert_int_equal(load(rig, "a=http://localhost:1", "b=http://127.0.0.1:1", false), ERR_INVALID);
    assert_non_null(strstr(rig->msg.text, "the host \"b\" is the same server as \"a\", and each"));
    put(rig->file, "[a]\nurl = http://h\n[b]\nurl = http://h/\n", 0600);
    assert_int_equal(load(rig, NULL, NULL, false), ERR_INVALID);
    assert_int_equal(load(rig, "b", NULL, false), 0);
    assert_int_equal(load(rig, "b", NULL, true), ERR_INVALID);
}

/* A token that others may read is none; one that is gone or empty is told by its file. */
static void reads_tokens_anew(void **state)
{
    struct rig *rig = *state;
    struct t3_reader_options options = {.token = NULL};
    char token[T3_READER_TOKEN_BYTES];
    char message[T3_RPC_MESSAGE_BYTES] = "";

    put(rig->file, TWO_HOSTS, 0600);
    assert_int_equal(load(rig, "mac", NULL, false), 0);
    t3_hosts_fill(&rig->hosts.list[0], &options);
    assert_string_equal(options.rpc.ca_file, rig->hosts.list[0].ca_file);
    assert_int_equal(options.token(options.context, token, message), 0);
    assert_string_equal(token, "tok-mac");
    put(rig->token, "tok-new", 0600);
    assert_int_equal(options.token(options.context, token, message), 0);
    assert_string_equal(token, "tok-new");
    put(rig->token, "tok-open", 0640);
    assert_int_not_equal(options.token(options.context, token, message), 0);
    assert_non_null(strstr(message, "chmod 600"));
    assert_null(strstr(message, "login")); /* which would not cure it */
    assert_null(strstr(message, "tok-open"));
    assert_string_equal(token, "");
    assert_int_equal(unlink(rig->token), 0);
    assert_int_not_equal(options.token(options.context, token, message), 0);
    assert_non_null(strstr(message, "mac.token"));
    assert_non_null(strstr(message, "; sign in with: arbe t3 login "));
    assert_non_null(strstr(message, " --host mac"));
}

/* Tokens are longer than secrets are; the cap is the reader's. */
static void takes_long_tokens(void **state)
{
    struct rig *rig = *state;
    char text[T3_READER_TOKEN_BYTES + 1];
    char token[T3_READER_TOKEN_BYTES];

    memset(text, 'x', sizeof(text));
    text[T3_READER_TOKEN_BYTES - 1] = '\0';
    put(rig->file, TWO_HOSTS, 0600);
    put(rig->token, text, 0600);
    assert_int_equal(load(rig, "mac", NULL, false), 0);
    assert_string_equal(token_of(rig, 0), text);
    text[T3_READER_TOKEN_BYTES - 1] = 'x';
    text[T3_READER_TOKEN_BYTES] = '\0';
    put(rig->token, text, 0600);
    assert_int_equal(t3_host_token(&rig->hosts.list[0], token, &rig->msg), ERR_INVALID);
}

/* ARBE_T3_TOKEN is for one host, which it wins over the file's; with several it is refused, and
 * without any it goes nowhere. */
static void takes_the_variable_for_one(void **state)
{
    struct rig *rig = *state;

    put(rig->file, TWO_HOSTS, 0600);
    assert_int_equal(setenv(TOKEN_VARIABLE, "tok-env", 1), 0);
    assert_int_equal(load(rig, "mac", NULL, false), 0);
    assert_string_equal(token_of(rig, 0), "tok-env");
    assert_int_equal(load(rig, "new=https://n", NULL, false), 0);
    assert_string_equal(token_of(rig, 0), "tok-env");
    assert_int_equal(load(rig, NULL, NULL, false), ERR_INVALID);
    assert_non_null(strstr(rig->msg.text, "ARBE_T3_TOKEN is for one host, and there are 2"));
    assert_null(strstr(rig->msg.text, "tok-env"));
    assert_int_equal(unlink(rig->file), 0);
    assert_int_equal(load(rig, NULL, NULL, false), 0);
    assert_int_equal(rig->hosts.count, 0);
    assert_int_equal(setenv(TOKEN_VARIABLE, "tok env", 1), 0);
    assert_int_equal(load(rig, "new=https://n", NULL, false), ERR_INVALID);
    assert_null(strstr(rig->msg.text, "tok env"));
}

/* All of them, by their labels, are in the watch. */
static void fills_a_watch(void **state)
{
    struct rig *rig = *state;
    struct t3_watch_options options = {.row = NULL};
    struct t3_watch *watch;

    put(rig->file, TWO_HOSTS, 0600);
    assert_int_equal(load(rig, NULL, NULL, false), 0);
    t3_board_options_init(&options.board);
    assert_int_equal(t3_watch_create(&options, &watch, &rig->msg), 0);
    assert_int_equal(t3_hosts_watch(&rig->hosts, watch, &rig->msg), 0);
    assert_int_equal(t3_watch_host_count(watch), 2);
    assert_string_equal(t3_watch_host_at(watch, 1)->label, "my-box");
    assert_string_equal(t3_watch_host_at(watch, 1)->url, "ws://127.0.0.1:1/ws");
    t3_watch_destroy(watch);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)

/* Each allocation in its turn: there is no list, and it says why. */
static void fails_without_memory(void **state)
{
    struct rig *rig = *state;
    int code = ERR_NOMEM;

    put(rig->file, TWO_HOSTS, 0644);
    for (long i = 0; code != 0; i++) {
        rig->msg.text[0] = '\0';
        fault_countdown = i;
        code = load(rig, "mac", "a=http://127.0.0.1:9", true);
        fault_countdown = -1;
        if (code != 0) {
            assert_int_equal(code, ERR_NOMEM);
            assert_non_null(strstr(rig->msg.text, "out of memory"));
            assert_null(rig->hosts.list);
        }
        assert_true(code != 0 || i > 10);
    }
    assert_int_equal(rig->hosts.count, 3);
    assert_int_equal(setenv(TOKEN_VARIABLE, "tok", 1), 0);
    fault_countdown = 0;
    assert_int_equal(take_variable(&(struct t3_hosts){rig->hosts.list, 1}, &rig->msg), ERR_NOMEM);
    fault_countdown = -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(none_is_good),
        RIG_TEST(reads_the_file),
        RIG_TEST(takes_flags),
        RIG_TEST(keeps_tokens_at_their_url),
        RIG_TEST(finds_one),
        RIG_TEST(refuses_words),
        RIG_TEST(caps_labels),
        RIG_TEST(refuses_lines),
        RIG_TEST(caps_the_file),
        RIG_TEST(refuses_a_file_of_others),
        RIG_TEST(wants_a_named_file),
        RIG_TEST(reads_tokens_anew),
        RIG_TEST(fills_a_watch),
        RIG_TEST(takes_long_tokens),
        RIG_TEST(takes_the_variable_for_one),
        RIG_TEST(heeds_the_variable_when_asked),
        RIG_TEST(keeps_tokens_off_open_ways),
        RIG_TEST(refuses_one_server_twice),
        RIG_TEST(fails_without_memory),
    };

    return UNIT_RUN(tests);
}
