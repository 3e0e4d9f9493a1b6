/* One pass over the table for the defaults, one for the environment, one over the arguments. */
#include "cli/flags.h"

#include "base/limits.h"
#include "base/number.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define NAME_BYTES_MAX   64
#define BOUND_BYTES_MAX  32
#define NEAR_EDITS_MAX   3 /* a name further off is no slip of the fingers */
#define SOURCE_BYTES_MAX 200
#define ENV_PREFIX       "ARBE_"
#define BLANK            " \t\r"

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

static int add_to_list(struct flag_list *list, struct slice item, const char *source,
                       struct errmsg *msg)
{
    if (list->count == FLAG_LIST_MAX) {
        return err_set(msg, ERR_INVALID, "%s: there are more than %u values", source,
                       FLAG_LIST_MAX);
    }
    list->items[list->count++] = item;
    return 0;
}

/* A value on the command line is one item, whatever it holds; elsewhere each word is one. */
static int set_list(const struct flag *flag, void *settings, const char *text,
                    struct flag_origin origin, const char *source, struct errmsg *msg)
{
    struct flag_list *list = place_of(flag, settings);
    size_t before = list->origin.source == origin.source ? list->count : 0;
    int code = 0;

    list->count = before;
    list->origin = origin;
    if (origin.source == FLAG_FROM_ARGUMENT && text[0] != '\0') {
        return add_to_list(list, slice_of(text), source, msg);
    }
    for (const char *at = text + strspn(text, BLANK); code == 0 && *at != '\0';) {
        size_t len = strcspn(at, BLANK);

        code = add_to_list(list, (struct slice){at, len}, source, msg);
        at += len;
        at += strspn(at, BLANK);
    }
    if (code == 0 && list->count == before) {
        code = err_set(msg, ERR_INVALID, "%s: an empty value is not good: it takes %s", source,
                       flag->hint);
    }
    return code;
}

static int set_value(const struct flag *flag, void *settings, const char *source, const char *text,
                     struct flag_origin origin, struct errmsg *msg)
{
    switch (flag->kind) {
    case FLAG_LIST:
        return set_list(flag, settings, text, origin, source, msg);
    case FLAG_TEXT:
    case FLAG_CONFIG:
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
    case FLAG_ACTION:
        return set_switch(flag, settings, source, text, msg);
    }
    return err_set(msg, ERR_INVALID, "%s: unknown kind of flag", source);
}

static void env_name_of(const struct flag *flag, char out[static NAME_BYTES_MAX])
{
    (void)snprintf(out, NAME_BYTES_MAX, ENV_PREFIX "%s", flag->name);
    for (char *c = out; *c != '\0'; c++) {
        if (*c == '-') {
            *c = '_';
        } else if (*c >= 'a' && *c <= 'z') {
            *c = (char)(*c - 'a' + 'A');
        }
    }
}

static int set(const struct flag_table *table, const struct flag *flag, const char *text,
               struct flag_origin origin, const char *source, struct errmsg *msg)
{
    int code = set_value(flag, table->settings, source, text, origin, msg);

    if (code == 0 && table->origins != NULL) {
        table->origins[flag - table->flags] = origin;
    }
    return code;
}

int flags_set_defaults(const struct flag_table *table, struct errmsg *msg)
{
    const struct flag_origin origin = {FLAG_FROM_DEFAULT, 0};
    int code = 0;

    for (size_t i = 0; code == 0 && i < table->count; i++) {
        const struct flag *flag = &table->flags[i];

        if (flag->fallback != NULL) {
            code = set(table, flag, flag->fallback, origin, flag->name, msg);
        } else if (table->origins != NULL) {
            table->origins[i] = origin;
        }
    }
    return code;
}

int flags_set_environment(const struct flag_table *table, flags_env_fn env, struct errmsg *msg)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < table->count; i++) {
        char name[NAME_BYTES_MAX];

        env_name_of(&table->flags[i], name);
        const char *text = table->flags[i].kind == FLAG_ACTION ? NULL : env(name);

        if (text != NULL) {
            code = set(table, &table->flags[i], text,
                       (struct flag_origin){FLAG_FROM_ENVIRONMENT, 0}, name, msg);
        }
    }
    return code;
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

/* The flag whose name is nearest to `name`; NULL when none is near: of a short name something must
 * be left. */
static const struct flag *nearest(const struct flag_table *table, struct slice name,
                                  size_t edits_max)
{
    const struct flag *found = NULL;
    size_t least = min_size(edits_max, name.len / 2) + 1;

    for (size_t i = 0; i < table->count; i++) {
        size_t distance = edits(name, slice_of(table->flags[i].name));

        if (distance < least) {
            least = distance;
            found = &table->flags[i];
        }
    }
    return found;
}

static int length_shown(struct slice name)
{
    return name.len > 40 ? 40 : (int)name.len;
}

static int unknown(const struct flag_table *table, struct slice name, struct errmsg *msg)
{
    const struct flag *near = nearest(table, name, NEAR_EDITS_MAX);

    if (near == NULL) {
        return err_set(msg, ERR_INVALID, "there is no flag --%.*s; --help lists them all",
                       length_shown(name), name.ptr);
    }
    return err_set(msg, ERR_INVALID, "there is no flag --%.*s; did you mean --%s?",
                   length_shown(name), name.ptr, near->name);
}

static const struct flag *find(const struct flag_table *table, struct slice name)
{
    for (size_t i = 0; i < table->count; i++) {
        if (slice_equal(name, slice_of(table->flags[i].name))) {
            return &table->flags[i];
        }
    }
    return NULL;
}

int flags_set_named(const struct flag_table *table, struct slice name, const char *text,
                    struct flag_origin origin, const char *source, struct errmsg *msg)
{
    const struct flag *flag = find(table, name);

    if (flag != NULL && !flags_is_setting(flag)) {
        return err_set(msg, ERR_INVALID, "%s: %s cannot stand in a file, only on the command line",
                       source, flag->name);
    }
    if (flag != NULL) {
        char where[SOURCE_BYTES_MAX];

        (void)snprintf(where, sizeof(where), "%s: %s", source, flag->name);
        return set(table, flag, text, origin, where, msg);
    }
    const struct flag *near = nearest(table, name, NEAR_EDITS_MAX);

    if (near == NULL) {
        return err_set(msg, ERR_INVALID, "%s: there is no setting \"%.*s\"", source,
                       length_shown(name), name.ptr);
    }
    return err_set(msg, ERR_INVALID, "%s: there is no setting \"%.*s\"; did you mean \"%s\"?",
                   source, length_shown(name), name.ptr, near->name);
}

/* The name of a flag that a variable's name stands for: ARBE_READ_PAGE is read-page. Empty when it
 * is longer than any. */
static struct slice flag_name_of(struct slice variable, char out[static NAME_BYTES_MAX])
{
    const size_t prefix = sizeof(ENV_PREFIX) - 1;
    size_t len = variable.len - prefix;

    if (len >= NAME_BYTES_MAX) {
        return SLICE("");
    }
    for (size_t i = 0; i < len; i++) {
        char c = variable.ptr[prefix + i];

        if (c >= 'A' && c <= 'Z') {
            c = (char)(c - 'A' + 'a');
        }
        out[i] = c == '_' ? '-' : c;
    }
    return (struct slice){out, len};
}

int flags_check_environment(const struct flag_table *table, char *const *environment,
                            struct errmsg *msg)
{
    for (char *const *entry = environment; *entry != NULL; entry++) {
        char memory[NAME_BYTES_MAX];
        struct slice rest = slice_of(*entry);
        struct slice variable;

        if (!slice_starts_with(rest, SLICE(ENV_PREFIX)) || !slice_split(&rest, '=', &variable)) {
            continue;
        }
        struct slice name = flag_name_of(variable, memory);
        /* A short name is near to any other short one. */
        size_t edits_max = name.len / 3 < NEAR_EDITS_MAX ? name.len / 3 : NEAR_EDITS_MAX;
        const struct flag *near = nearest(table, name, edits_max);

        if (near != NULL && !slice_equal(name, slice_of(near->name))) {
            char wanted[NAME_BYTES_MAX];

            env_name_of(near, wanted);
            return err_set(msg, ERR_INVALID,
                           "the variable %.*s sets nothing; did you mean %s? Unset it otherwise",
                           length_shown(variable), variable.ptr, wanted);
        }
    }
    return 0;
}

/* Where a value should stand, another flag says that it was forgotten. */
static bool is_flag(const struct flag_table *table, const char *word)
{
    struct slice rest = slice_of(word);
    struct slice name;

    return slice_split(&rest, '=', &name) && name.len > 2 && memcmp(name.ptr, "--", 2) == 0 &&
           find(table, (struct slice){name.ptr + 2, name.len - 2}) != NULL;
}

int flags_take_argument(const struct flag_table *table, int argc, char **argv, int *ret_used,
                        struct errmsg *msg)
{
    char source[NAME_BYTES_MAX];
    struct slice rest = slice_of(argv[0] + 2);
    struct slice name;

    (void)slice_split(&rest, '=', &name); /* an empty argument names an empty flag */
    const struct flag *flag = find(table, name);

    if (flag == NULL) {
        return unknown(table, name, msg);
    }
    (void)snprintf(source, sizeof(source), "--%s", flag->name);
    int used = 1;
    const char *value = rest.ptr; /* ends where the argument ends */

    if (value == NULL && (flag->kind == FLAG_SWITCH || flag->kind == FLAG_ACTION)) {
        value = "1";
    } else if (value == NULL) {
        if (argc < 2 || is_flag(table, argv[1])) {
            return err_set(msg, ERR_INVALID, "%s needs a value: %s", source, flag->hint);
        }
        value = argv[1];
        used = 2;
    }
    int code = set(table, flag, value, (struct flag_origin){FLAG_FROM_ARGUMENT, 0}, source, msg);

    if (code == 0) {
        *ret_used = used;
    }
    return code;
}

int flags_set_arguments(const struct flag_table *table, int argc, char **argv, struct errmsg *msg)
{
    for (int i = 0; i < argc;) {
        if (strncmp(argv[i], "--", 2) != 0) {
            return err_set(msg, ERR_INVALID, "\"%.40s\" is not expected here: flags begin with --",
                           argv[i]);
        }
        int used = 0;
        int code = flags_take_argument(table, argc - i, argv + i, &used, msg);

        if (code != 0) {
            return code;
        }
        i += used;
    }
    return 0;
}

int flags_parse(const struct flag_table *table, int argc, char **argv, flags_env_fn env,
                struct errmsg *msg)
{
    int code = flags_set_defaults(table, msg);

    if (code == 0) {
        code = flags_set_environment(table, env, msg);
    }
    return code == 0 ? flags_set_arguments(table, argc, argv, msg) : code;
}

bool flags_is_setting(const struct flag *flag)
{
    return flag->kind != FLAG_CONFIG && flag->kind != FLAG_ACTION;
}

static void format_choice(const struct flag *flag, uint64_t value, struct buf *out)
{
    struct slice rest = slice_of(flag->choices);
    struct slice choice = SLICE("");

    for (uint64_t i = 0; i <= value; i++) {
        bool there = slice_split(&rest, '|', &choice);
        assert(there);
    }
    buf_append(out, choice);
}

void flags_format(const struct flag *flag, const void *settings, struct buf *out)
{
    const char *place = (const char *)settings + flag->at;
    char text[BOUND_BYTES_MAX];
    const char *words;
    uint64_t value;

    if (flag->kind == FLAG_LIST) {
        const struct flag_list *list = (const void *)place;

        for (size_t i = 0; i < list->count; i++) {
            buf_append(out, i == 0 ? SLICE("") : SLICE(" "));
            buf_append(out, list->items[i]);
        }
        return;
    }
    if (flag->kind == FLAG_TEXT) {
        memcpy(&words, place, sizeof(words));
        buf_append(out, words == NULL ? SLICE("") : slice_of(words));
        return;
    }
    memcpy(&value, place, sizeof(value));
    if (flag->kind == FLAG_CHOICE) {
        format_choice(flag, value, out);
    } else if (flag->kind == FLAG_SWITCH) {
        buf_append(out, value ? SLICE("true") : SLICE("false"));
    } else if (value != 0 || flag->fallback != NULL) {
        format_bound(flag, text, value);
        buf_append(out, slice_of(text));
    }
}

void flags_print_help(const struct flag *flags, size_t count, FILE *out)
{
    for (size_t i = 0; i < count; i++) {
        char left[NAME_BYTES_MAX];

        (void)snprintf(left, sizeof(left), "--%s %s", flags[i].name,
                       flags[i].hint == NULL ? "" : flags[i].hint);
        (void)fprintf(out, "  %-33s %s", left, flags[i].help);
        if (flags[i].fallback != NULL) {
            (void)fprintf(out, " (default %s)", flags[i].fallback);
        }
        (void)fprintf(out, "\n");
    }
}
