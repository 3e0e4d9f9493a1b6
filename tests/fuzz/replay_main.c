/*
 * Replays a corpus: every file of the directory in argv[1] goes once through the fuzz target that
 * this file is linked with, so that what fuzzing ever found stays found without libFuzzer. A crash
 * ends the program; the runner sees that. The input is copied into a heap block of its exact size,
 * where the address sanitizer catches a read one byte past it.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    INPUT_BYTES_MAX = 16 << 20
};

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return -1;
    }
    uint8_t *whole = malloc(INPUT_BYTES_MAX);
    if (whole == NULL) {
        (void)fclose(file);
        return -1;
    }
    size_t size = fread(whole, 1, INPUT_BYTES_MAX, file);
    (void)fclose(file);
    /* An empty input is a null pointer to libFuzzer's targets too; malloc(0) may give either. */
    uint8_t *exact = malloc(size);
    if (exact != NULL && size > 0) {
        memcpy(exact, whole, size);
    }
    free(whole);
    (void)LLVMFuzzerTestOneInput(exact, exact != NULL ? size : 0);
    free(exact);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s CORPUS_DIRECTORY\n", argv[0]);
        return 100;
    }
    DIR *dir = opendir(argv[1]);
    if (dir == NULL) {
        perror(argv[1]);
        return 1;
    }
    unsigned passed = 0;
    unsigned failed = 0;
    const struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        char path[4096];
        if (entry->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        if (replay_file(path) == 0) {
            passed++;
        } else {
            failed++;
        }
    }
    (void)closedir(dir);
    printf("%u passed, %u failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
