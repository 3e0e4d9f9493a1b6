/* The secret's file: what is cut, and who else may read it. */
#include "cli/secret.c"

#include "unit/base/unit.h"

#include <stdio.h>
#include <stdlib.h>

static int read_back(const char *text, size_t len, mode_t mode,
                     char memory[static SECRET_BYTES_MAX], struct slice *ret_secret,
                     struct errmsg *msg)
{
    char path[] = "/tmp/arbe-secret-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, len), len);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
    int code = secret_read(path, memory, ret_secret, msg);

    assert_int_equal(unlink(path), 0);
    return code;
}

/* The line end behind the secret is no part of it. */
static void cuts_line_end(void **state)
{
    char memory[SECRET_BYTES_MAX];
    struct slice secret;
    struct errmsg msg = {{0}};

    (void)state;
    assert_int_equal(read_back("s3cret\n", 7, 0600, memory, &secret, &msg), 0);
    assert_true(slice_equal(secret, SLICE("s3cret")));
    assert_int_equal(read_back("s3cret\r\n", 8, 0400, memory, &secret, &msg), 0);
    assert_true(slice_equal(secret, SLICE("s3cret")));
    assert_int_equal(read_back("s3cret", 6, 0600, memory, &secret, &msg), 0);
    assert_true(slice_equal(secret, SLICE("s3cret")));
}

/* A file that others can read is refused, with the cure. */
static void refuses_open_files(void **state)
{
    char memory[SECRET_BYTES_MAX];
    struct slice secret;
    struct errmsg msg = {{0}};
    const mode_t modes[] = {0640, 0604, 0660, 0610};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(modes); i++) {
        assert_int_equal(read_back("s\n", 2, modes[i], memory, &secret, &msg), ERR_PERM);
        assert_non_null(strstr(msg.text, "chmod 600"));
    }
}

/* Nothing, spaces, two lines and a flood are no secrets; a missing file is told by name. */
static void refuses_contents(void **state)
{
    char memory[SECRET_BYTES_MAX];
    char flood[SECRET_BYTES_MAX];
    struct slice secret;
    struct errmsg msg = {{0}};

    (void)state;
    memset(flood, 'x', sizeof(flood));
    assert_int_equal(read_back("", 0, 0600, memory, &secret, &msg), ERR_INVALID);
    assert_int_equal(read_back("\n\n", 2, 0600, memory, &secret, &msg), ERR_INVALID);
    assert_int_equal(read_back("a b\n", 4, 0600, memory, &secret, &msg), ERR_INVALID);
    assert_int_equal(read_back("a\nb\n", 4, 0600, memory, &secret, &msg), ERR_INVALID);
    assert_int_equal(read_back(flood, sizeof(flood), 0600, memory, &secret, &msg), ERR_INVALID);
    assert_int_equal(secret_read("/nowhere/secret", memory, &secret, &msg), ERR_IO);
    assert_non_null(strstr(msg.text, "/nowhere/secret"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_line_end),
        cmocka_unit_test(refuses_open_files),
        cmocka_unit_test(refuses_contents),
    };

    return UNIT_RUN(tests);
}
