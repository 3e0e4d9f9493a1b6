/* Descriptors that run out: whatever library finds none, it is said of them. */
#include "t3/rpc_scarce.c"

#include "t3/rpc_attempt.h"
#include "unit/serve/certificate.h"
#include "unit/t3/fake_names.h"
#include "unit/t3/rpc_rig.h"

#include <openssl/x509_vfy.h>
#include <sys/resource.h>

static struct rlimit limit_before;

static void leave_descriptors(rlim_t count)
{
    int lowest = dup(0);

    assert_true(lowest > 0);
    (void)close(lowest);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit_before), 0);
    const struct rlimit few = {(rlim_t)lowest + count, limit_before.rlim_max};

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
}

static void give_descriptors(void)
{
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit_before), 0);
}

/* None is taken for good by looking, and one is fewer than two. */
static void test_scarce(void **state)
{
    (void)state;
    assert_false(rpc_scarce_descriptors(2));
    assert_string_equal(rpc_scarce_text(2), "out of memory");
    leave_descriptors(1);
    for (int i = 0; i < 3; i++) {
        assert_false(rpc_scarce_descriptors(1));
        assert_true(rpc_scarce_descriptors(2));
    }
    assert_string_equal(rpc_scarce_text(1), "out of memory");
    assert_string_equal(rpc_scarce_text(2), "no descriptor is left");
    give_descriptors();
    leave_descriptors(0);
    assert_true(rpc_scarce_descriptors(1));
    give_descriptors();
}

/* How a connection ends when so many are left. */
static struct t3_rpc_error end_with(rlim_t count, const char *url, const char *ca_file)
{
    struct t3_rpc_options options = quiet();
    struct t3_rpc_error error = {.code = T3_RPC_OK};
    struct t3_rpc_event event;
    struct t3_rpc *rpc = NULL;

    options.ca_file = ca_file;
    leave_descriptors(count);
    if (t3_rpc_connect(url, &options, &rpc, &error) == T3_RPC_OK) {
        assert_int_equal(t3_rpc_next(rpc, -1, &event), 1);
        error = event.error;
        t3_rpc_free(rpc);
    }
    give_descriptors();
    return error;
}

/* As long as descriptors are too few, however many there are, it is said of them, and neither of
 * memory, nor of names or certificates. With enough of them nobody listens there. */
static void test_connections(void **state)
{
    static const char *const urls[] = {"ws://127.0.0.1", "ws://one.test", "wss://one.test"};
    char ca_file[] = "/tmp/arbe-rpc-XXXXXX";
    struct certificate authority;
    struct rig rig = {0};

    (void)state;
    (void)close(mkstemp(ca_file));
    certificate_init(&authority, NULL, NULL, -3600, 3600);
    certificate_save(&authority, ca_file);
    ws_peer_init(&rig.peer, NULL);
    (void)close(rig.peer.listening);
    rig.peer.listening = -1;
    for (size_t i = 0; i < ARRAY_COUNT(urls); i++) {
        struct t3_rpc_error error = {.code = T3_RPC_ERROR_MEMORY};
        rlim_t count = 0;
        char url[64];

        (void)snprintf(url, sizeof(url), "%s:%u", urls[i], rig.peer.port);
        for (; error.code == T3_RPC_ERROR_MEMORY && count < 10; count++) {
            error = end_with(count, url, url[2] == 's' ? ca_file : NULL);
            if (error.code == T3_RPC_ERROR_MEMORY &&
                strstr(error.message, "no descriptor is left") == NULL) {
                fail_msg("%s with %u left: %s", url, (unsigned)count, error.message);
            }
        }
        assert_int_equal(error.code, T3_RPC_ERROR_NETWORK);
        assert_non_null(strstr(error.message, "nothing answers there"));
        assert_true(count > 3);
    }
    rig_finish(&rig);
    certificate_finish(&authority);
    (void)unlink(ca_file);
}

/* The system's certificates are files of their own, which are opened when one is to be checked. */
static void test_certificates(void **state)
{
    static const struct rpc_url url = {.host = (char *)"one.test"};
    struct rpc_attempt attempt;
    struct rpc_failure failure;

    (void)state;
    rpc_attempt_init(&attempt, &url, false);
    attempt.verify_code = X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY;
    leave_descriptors(0);
    assert_false(rpc_attempt_fail(&attempt, "connect SSL err", &failure));
    give_descriptors();
    assert_int_equal(failure.code, T3_RPC_ERROR_MEMORY);
    assert_string_equal(failure.text, "no descriptor is left");
    assert_false(rpc_attempt_fail(&attempt, "connect SSL err", &failure));
    assert_int_equal(failure.code, T3_RPC_ERROR_TLS);
    rpc_attempt_finish(&attempt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scarce),
        cmocka_unit_test(test_connections),
        cmocka_unit_test(test_certificates),
    };

    return UNIT_RUN(tests);
}
