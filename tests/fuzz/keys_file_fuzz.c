/* The file of keys: bytes as they are, and bytes that prove themselves, as those of an older or a
 * hostile program would. What is read comes back from being written. */
#include "serve/keys_file.h"

#include <assert.h>
#include <openssl/evp.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct slice text)
{
    struct keys_set set = {.count = 0};
    struct keys_set again = {.count = 0};
    struct errmsg msg = {{0}};
    struct buf out;
    struct buf same;

    if (keys_set_decode(text, &set, &msg) != 0) {
        assert(msg.text[0] != '\0');
        assert(set.count == 0);
        return;
    }
    assert(set.count > 0);
    assert(set.count <= KEYS_MAX);
    buf_init(&out, KEYS_FILE_BYTES_MAX);
    keys_set_encode(&set, &out);
    assert(!out.failed);
    assert(keys_set_decode(buf_slice(&out), &again, &msg) == 0);
    buf_init(&same, KEYS_FILE_BYTES_MAX);
    keys_set_encode(&again, &same);
    assert(slice_equal(buf_slice(&out), buf_slice(&same)));
    buf_finish(&same);
    buf_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t sum[32];
    unsigned len = sizeof(sum);
    struct buf text;

    check((struct slice){(const char *)data, size});
    buf_init(&text, size + 128);
    buf_append(&text, (struct slice){(const char *)data, size});
    assert(EVP_Digest(text.len > 0 ? text.ptr : "", text.len, sum, &len, EVP_sha256(), NULL) == 1);
    buf_append(&text, SLICE("sha256 "));
    for (size_t i = 0; i < sizeof(sum); i++) {
        buf_append_format(&text, "%02x", sum[i]);
    }
    buf_append_char(&text, '\n');
    assert(!text.failed);
    check(buf_slice(&text));
    buf_finish(&text);
    return 0;
}
