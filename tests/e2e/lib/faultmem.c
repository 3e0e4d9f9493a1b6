/* A library to preload (LD_PRELOAD) that lets an allocation of arbe itself fail; those of the
 * libraries it uses and of programs that start it are left alone. FAULTMEM is "once N" or "ever N":
 * N allocations succeed, and the next one fails, or all from there on. That one did is noted as a
 * file, FAULTMEM_HIT. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static atomic_long countdown = -1;
static int for_ever;
static const char *hit_path;
static uintptr_t first = UINTPTR_MAX; /* of the program's code */
static uintptr_t last;

/* The first object is the program. */
static int find_program(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + part->p_vaddr;

        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0) {
            first = begin;
            last = begin + part->p_memsz;
        }
    }
    return 1;
}

__attribute__((constructor)) static void begin(void)
{
    const char *spec = getenv("FAULTMEM");
    char word[8];
    long count;

    hit_path = getenv("FAULTMEM_HIT");
    if (strncmp(program_invocation_short_name, "arbe", 4) == 0 && spec != NULL &&
        hit_path != NULL && sscanf(spec, "%7s %ld", word, &count) == 2) {
        (void)dl_iterate_phdr(find_program, NULL);
        for_ever = strcmp(word, "ever") == 0;
        countdown = count;
    }
}

static int fails(const void *caller)
{
    if (countdown < 0 || (uintptr_t)caller < first || (uintptr_t)caller >= last ||
        atomic_fetch_sub(&countdown, 1) != 0) {
        return 0;
    }
    int fd = open(hit_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd >= 0) {
        close(fd);
    }
    countdown = for_ever ? 0 : -1;
    errno = ENOMEM;
    return 1;
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t size)
{
    return fails(CALLER) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails(CALLER) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails(CALLER) ? NULL : __libc_realloc(old, size);
}

static char *copy(const char *text, size_t len)
{
    char *bytes = __libc_malloc(len + 1);

    if (bytes != NULL) {
        memcpy(bytes, text, len);
        bytes[len] = '\0';
    }
    return bytes;
}

char *strdup(const char *text)
{
    return fails(CALLER) ? NULL : copy(text, strlen(text));
}

char *strndup(const char *text, size_t max)
{
    return fails(CALLER) ? NULL : copy(text, strnlen(text, max));
}
