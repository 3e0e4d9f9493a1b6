/* One pass over the table for defaults and environment, one over the arguments. */
#include "cli/flags.h"

#include "base/limits.h"
#include "base/number.h"

#include <inttypes.h>
#include <string.h>

#define NAME_BYTES_MAX  64
#define BOUND_BYTES_MAX 32
#define NEAR_EDITS_MAX  3 /* a name further off is no slip of the fingers */

static void *place_of(const struct flag *flag, void *settings)
{
    return (char *)settings + flag->at;
}

static void store_number(const struct flag *flag, void *settings, uint64_t value)
{
    memcpy(place_of(flag, settings), &value, sizeof(value));
}

static void format_size(char out[static BOUND_BYTES_MAX], uint64_t bytes)
{
    if (bytes % MIB == 0 && bytes > 0) {
        (void)snprintf(out, BOUND_BYTES_MAX, "%" PRIu64 "MiB", bytes / MIB);
    } else if (bytes % KIB == 0 && bytes > 0) {
        (void)snprintf(out, BOUND_BYTES_MAX, "%" PRIu64 "KiB", bytes / KIB);
    } else {
        (void)snprintf(out, BOUND_BYTES_MAX, "%" PRIu64, bytes);
    }
}

static void format_duration(char out[static BOUND_BYTES_MAX], uint64_t ms)
{
    if (ms % 3600000 == 0 && ms > 0) {
        (void)snprintf(out, BOUND_BYTES_MAX, "%" PRIu64 "h", ms / 3600000);
    } else if (ms % 1000 == 0 && ms > 0) {
        (void)snprintf(out, BOUND_BYTES_MAX, "%" PRIu64 "s", ms / 1000);
    } else {
        (void)snprintf(out, BOUND_BYTES_MAX, "%" PRIu64 "ms", ms);
    }
}

static void format_bound(const struct flag *flag, char out[static BOUND_BYTES_MAX], uint64_t value)
{
    if (flag->kind == FLAG_SIZE) {
        format_size(out, value);
    } else if (flag->kind == FLAG_DURATION) {
        format_duration(out, value);
    } else {
        (void)snprintf(out, BOUND_BYTES_MAX, "%" PRIu64, value);
    }
}

static bool parse_number(const struct flag *flag, struct slice text, uint64_t *ret_value)
{
    switch (flag->kind) {
    case FLAG_SIZE:
        return number_parse_size(text, ret_value);
    case FLAG_DURATION:
        return number_parse_duration(text, ret_value);
    default:
        return number_parse_u64(text, UINT64_MAX, false, ret_value);
    }
}

static const char *what_is_wanted(const struct flag *flag)
{
    switch (flag->kind) {
    case FLAG_SIZE:
        return "a size in bytes or with KiB, MiB or GiB, such as 4MiB,";
    case FLAG_DURATION:
        return "a time with ms, s, m or h, such as 30s,";
    default:
        return "a whole number";
    }
}

static int set_number(const struct flag *flag, void *settings, const char *source, const char *text,
                      struct errmsg *msg)
{
    char min[BOUND_BYTES_MAX];
    char max[BOUND_BYTES_MAX];
    uint64_t value = 0;

    if (parse_number(flag, slice_of(text), &value) && value >= flag->min && value <= flag->max) {
        store_number(flag, settings, value);
        return 0;
    }
    format_bound(flag, min, flag->min);
    format_bound(flag, max, flag->max);
    return err_set(msg, ERR_INVALID, "%s: \"%.40s\" is not good: it takes %s from %s to %s", source,
                   text, what_is_wanted(flag), min, max);
}

static int set_choice(const struct flag *flag, void *settings, const char *source, const char *text,
                      struct errmsg *msg)
{
    struct slice rest = slice_of(flag->choices);
    struct slice choice;

    for (uint64_t i = 0; slice_split(&rest, '|', &choice); i++) {
        if (slice_equal(choice, slice_of(text))) {
            store_number(flag, settings, i);
            return 0;
        }
    }
    return err_set(msg, ERR_INVALID, "%s: \"%.40s\" is not good: it takes one of %s", source, text,
                   flag->choices);
}

/* A switch in the environment or a file needs a word. */
static int set_switch(const struct flag *flag, void *settings, const char *source, const char *text,
                      struct errmsg *msg)
{
    bool on = strcmp(text, "1") == 0 || strcmp(text, "true") == 0;

    if (!on && strcmp(text, "0") != 0 && strcmp(text, "false") != 0) {
        return err_set(msg, ERR_INVALID,
                       "%s: \"%.40s\" is not good: it takes 1 or true, 0 or false", source, text);
    }
    store_number(flag, settings, on);
    return 0;
}

int flags_set(const struct flag *flag, void *settings, const char *source, const char *text,
              struct errmsg *msg)
{
    switch (flag->kind) {
    case FLAG_TEXT:
        if (text[0] == '\0') {
            return err_set(msg, ERR_INVALID, "%s: an empty value is not good: it takes %s", source,
                           flag->hint);
        }
        memcpy(place_of(flag, settings), &text, sizeof(text));
        return 0;
    case FLAG_COUNT:
    case FLAG_SIZE:
    case FLAG_DURATION:
        return set_number(flag, settings, source, text, msg);
    case FLAG_CHOICE:
        return set_choice(flag, settings, source, text, msg);
    case FLAG_SWITCH:
        return set_switch(flag, settings, source, text, msg);
    }
    return err_set(msg, ERR_INVALID, "%s: unknown kind of flag", source);
}

static void env_name_of(const struct flag *flag, char out[static NAME_BYTES_MAX])
{
    (void)snprintf(out, NAME_BYTES_MAX, "ARBE_%s", flag->name);
    for (char *c = out; *c != '\0'; c++) {
        if (*c == '-') {
            *c = '_';
        } else if (*c >= 'a' && *c <= 'z') {
            *c = (char)(*c - 'a' + 'A');
        }
    }
}

/* Defaults, then what the environment says. */
static int set_before_arguments(const struct flag *flags, size_t count, void *settings,
                                flags_env_fn env, struct errmsg *msg)
{
    for (size_t i = 0; i < count; i++) {
        char name[NAME_BYTES_MAX];

        env_name_of(&flags[i], name);
        const char *text = env(name);
        const char *source = name;

        if (text == NULL) {
            text = flags[i].fallback;
            source = flags[i].name;
        }
        int code = text == NULL ? 0 : flags_set(&flags[i], settings, source, text, msg);

        if (code != 0) {
            return code;
        }
    }
    return 0;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits that make one name of the other (Levenshtein), one row at a time. */
static size_t edits(struct slice a, struct slice b)
{
    size_t row[NAME_BYTES_MAX + 1];

    if (a.len > NAME_BYTES_MAX || b.len > NAME_BYTES_MAX) {
        return NAME_BYTES_MAX;
    }
    for (size_t j = 0; j <= b.len; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t above = row[j];
            size_t changed = diagonal + (a.ptr[i - 1] != b.ptr[j - 1]);

            row[j] = min_size(changed, min_size(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[b.len];
}

static int unknown(const struct flag *flags, size_t count, struct slice name, struct errmsg *msg)
{
    const struct flag *nearest = NULL;
    size_t least = NEAR_EDITS_MAX + 1;

    for (size_t i = 0; i < count; i++) {
        size_t distance = edits(name, slice_of(flags[i].name));

        if (distance < least) {
            least = distance;
            nearest = &flags[i];
        }
    }
    int len = name.len > 40 ? 40 : (int)name.len;

    if (nearest == NULL) {
        return err_set(msg, ERR_INVALID, "there is no flag --%.*s; --help lists them all", len,
                       name.ptr);
    }
    return err_set(msg, ERR_INVALID, "there is no flag --%.*s; did you mean --%s?", len, name.ptr,
                   nearest->name);
}

static const struct flag *find(const struct flag *flags, size_t count, struct slice name)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(name, slice_of(flags[i].name))) {
            return &flags[i];
        }
    }
    return NULL;
}

/* Takes the flag at argv[0]: how many arguments it used, or an error. */
static int take_argument(const struct flag *flags, size_t count, void *settings, int argc,
                         char **argv, struct errmsg *msg)
{
    char source[NAME_BYTES_MAX];
    struct slice rest = slice_of(argv[0] + 2);
    struct slice name;

    (void)slice_split(&rest, '=', &name); /* an empty argument names an empty flag */
    const struct flag *flag = find(flags, count, name);

    if (flag == NULL) {
        return unknown(flags, count, name, msg);
    }
    (void)snprintf(source, sizeof(source), "--%s", flag->name);
    int used = 1;
    const char *value = rest.ptr; /* ends where the argument ends */

    if (value == NULL && flag->kind == FLAG_SWITCH) {
        value = "1";
    } else if (value == NULL) {
        if (argc < 2) {
            return err_set(msg, ERR_INVALID, "%s needs a value: %s", source, flag->hint);
        }
        value = argv[1];
        used = 2;
    }
    int code = flags_set(flag, settings, source, value, msg);

    return code == 0 ? used : code;
}

int flags_parse(const struct flag *flags, size_t count, void *settings, int argc, char **argv,
                flags_env_fn env, struct errmsg *msg)
{
    int code = set_before_arguments(flags, count, settings, env, msg);

    for (int i = 0; code == 0 && i < argc;) {
        if (strncmp(argv[i], "--", 2) != 0) {
            return err_set(msg, ERR_INVALID, "\"%.40s\" is not expected here: flags begin with --",
                           argv[i]);
        }
        int used = take_argument(flags, count, settings, argc - i, argv + i, msg);

        if (used < 0) {
            return used;
        }
        i += used;
    }
    return code;
}

void flags_print_help(const struct flag *flags, size_t count, FILE *out)
{
    for (size_t i = 0; i < count; i++) {
        char left[NAME_BYTES_MAX];

        (void)snprintf(left, sizeof(left), "--%s %s", flags[i].name,
                       flags[i].hint == NULL ? "" : flags[i].hint);
        (void)fprintf(out, "  %-31s %s", left, flags[i].help);
        if (flags[i].fallback != NULL) {
            (void)fprintf(out, " (default %s)", flags[i].fallback);
        }
        (void)fprintf(out, "\n");
    }
}
