/* Certificates for tests of TLS, made anew in each run: an authority of our own, and what it or
 * nobody signs. */
#ifndef ARBE_TESTS_UNIT_SERVE_CERTIFICATE_H
#define ARBE_TESTS_UNIT_SERVE_CERTIFICATE_H

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "unit/base/unit.h"

struct certificate {
    EVP_PKEY *key;
    X509 *x509;
};

static inline void certificate_extend(X509 *x509, int nid, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

    assert_non_null(extension);
    assert_int_equal(X509_add_ext(x509, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

/* For the host `name`, or an authority where that is NULL; signed by `issuer`, or by itself where
 * that is NULL; valid from `from_s` to `to_s` from now. */
static inline void certificate_init(struct certificate *c, const char *name,
                                    const struct certificate *issuer, long from_s, long to_s)
{
    char alternative[128];
    X509_NAME *subject;

    c->key = EVP_EC_gen("P-256");
    c->x509 = X509_new();
    assert_non_null(c->key);
    assert_non_null(c->x509);
    assert_int_equal(X509_set_version(c->x509, 2), 1);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(c->x509), name == NULL ? 1 : 2), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(c->x509), from_s));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(c->x509), to_s));
    subject = X509_get_subject_name(c->x509);
    assert_int_equal(X509_NAME_add_entry_by_txt(
                         subject, "CN", MBSTRING_ASC,
                         (const unsigned char *)(name == NULL ? "authority" : name), -1, -1, 0),
                     1);
    assert_int_equal(X509_set_issuer_name(
                         c->x509, issuer == NULL ? subject : X509_get_subject_name(issuer->x509)),
                     1);
    assert_int_equal(X509_set_pubkey(c->x509, c->key), 1);
    certificate_extend(c->x509, NID_basic_constraints,
                       name == NULL ? "critical,CA:TRUE" : "critical,CA:FALSE");
    if (name != NULL) {
        (void)snprintf(alternative, sizeof(alternative), "DNS:%s", name);
        certificate_extend(c->x509, NID_subject_alt_name, alternative);
    }
    assert_true(X509_sign(c->x509, issuer == NULL ? c->key : issuer->key, EVP_sha256()) > 0);
}

static inline void certificate_finish(struct certificate *c)
{
    X509_free(c->x509);
    EVP_PKEY_free(c->key);
}

/* Writes it where libcurl can read it. */
static inline void certificate_save(const struct certificate *c, const char *path)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, c->x509), 1);
    assert_int_equal(fclose(file), 0);
}

/* What a server with that certificate needs. */
static inline SSL_CTX *certificate_server(const struct certificate *c)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

    assert_non_null(ctx);
    assert_int_equal(SSL_CTX_use_certificate(ctx, c->x509), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(ctx, c->key), 1);
    return ctx;
}

#endif
