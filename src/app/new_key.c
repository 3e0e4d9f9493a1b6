/* What is stored is a hash: the secret itself leaves in one answer, and is nowhere afterwards. */
#include "app/new_key.h"

/* The hash, in the call's memory. */
static int hash_of(struct api_call *c, const char *secret, struct slice *ret_hash)
{
    char *hash = arena_try_alloc(&c->memory, API_KEY_HASH_BYTES);

    if (hash == NULL || !api_key_hash(slice_of(secret), hash)) {
        return api_refuse(c, API_BUSY, "the server has no memory for this just now");
    }
    *ret_hash = slice_of(hash);
    return API_DONE;
}

int new_key_make(struct api_call *c, struct slice agent_id, struct slice name,
                 char ret_key[static API_KEY_BYTES], struct key_record *ret_record)
{
    unsigned char random[API_KEY_RANDOM_BYTES];
    struct key_record record = {
        .id = api_new_id(c), .agent_id = agent_id, .name = name, .created_ms = c->now_ms};

    if (record.id.ptr == NULL || !api_random(c, random)) {
        return API_FAILED;
    }
    api_key_make(random, ret_key);
    explicit_bzero(random, sizeof(random));
    if (hash_of(c, ret_key, &record.hash) != API_DONE) {
        return API_FAILED;
    }
    *ret_record = record;
    return API_DONE;
}

int new_token_make(struct api_call *c, char ret_token[static API_TOKEN_BYTES],
                   struct slice *ret_hash)
{
    unsigned char random[API_KEY_RANDOM_BYTES];

    if (!api_random(c, random)) {
        return API_FAILED;
    }
    api_token_make(random, ret_token);
    explicit_bzero(random, sizeof(random));
    return hash_of(c, ret_token, ret_hash);
}
