/* What the programs of the end-to-end tests share: options as NAME=VALUE, and lines of JSON. */
#ifndef ARBE_TESTS_CLIENT_PROGRAM_H
#define ARBE_TESTS_CLIENT_PROGRAM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the command line: a program sets them before it asks. */
static int option_count;
static char **option_words;

static inline const char *option(const char *name, const char *otherwise)
{
    size_t len = strlen(name);

    for (int i = 0; i < option_count; i++) {
        if (strncmp(option_words[i], name, len) == 0 && option_words[i][len] == '=') {
            return option_words[i] + len + 1;
        }
    }
    return otherwise;
}

static inline int number(const char *name, int otherwise)
{
    const char *text = option(name, NULL);

    return text == NULL ? otherwise : (int)strtol(text, NULL, 10);
}

/* A member behind another one. */
static inline void print_text(const char *name, const char *text)
{
    printf(",\"%s\":\"", name);
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20) {
            printf("\\u%04x", (unsigned)*text);
            continue;
        }
        if (*text == '"' || *text == '\\') {
            putchar('\\');
        }
        putchar(*text);
    }
    putchar('"');
}

/* Resident memory at its highest, in KiB. */
static inline long high_water(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kib = -1;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kib = strtol(line + 6, NULL, 10);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return kib;
}

#endif
