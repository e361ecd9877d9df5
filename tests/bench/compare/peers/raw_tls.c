/* raw_tls.c: OpenSSL with one cipher and a key that both ends know. See raw_tls.h. */
#include "raw_tls.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char KEY[] = "a benchmark has no secrets......";

static void must(int well, const char *what) {
  if (well) return;
  fprintf(stderr, "raw: %s failed\n", what);
  exit(1);
}

static unsigned server_key(SSL *ssl, const char *identity, unsigned char *psk, unsigned most) {
  (void)ssl, (void)identity, (void)most;
  memcpy(psk, KEY, sizeof KEY - 1);
  return sizeof KEY - 1;
}

static unsigned client_key(SSL *ssl, const char *hint, char *identity, unsigned most_identity, unsigned char *psk, unsigned most) {
  (void)hint;
  strncpy(identity, "bench", most_identity);
  return server_key(ssl, identity, psk, most);
}

static SSL *begin(int fd, int server) {
  SSL_CTX *context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
  must(context && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION), "TLS 1.3");
  must(SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256"), "the cipher");
  SSL_CTX_set_psk_server_callback(context, server_key);
  SSL_CTX_set_psk_client_callback(context, client_key);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_read_ahead(context, 1); /* several records with one call of the system */
  SSL_CTX_set_default_read_buffer_len(context, 256 << 10);
  SSL *ssl = SSL_new(context);
  SSL_CTX_free(context);
  must(ssl && SSL_set_fd(ssl, fd), "SSL_set_fd");
  return ssl;
}

void *raw_tls_accept(int fd) {
  SSL *ssl = begin(fd, 1);
  must(SSL_accept(ssl) == 1, "SSL_accept");
  return ssl;
}

void *raw_tls_connect(int fd) {
  SSL *ssl = begin(fd, 0);
  must(SSL_connect(ssl) == 1, "SSL_connect");
  return ssl;
}

static ssize_t said(SSL *ssl, int well, size_t done) {
  if (well) return (ssize_t)done;
  const int error = SSL_get_error(ssl, 0);
  if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return 0;
  errno = EAGAIN;
  return -1;
}

ssize_t raw_tls_read(void *tls, void *at, size_t bytes) {
  size_t done = 0;
  const int well = SSL_read_ex(tls, at, bytes, &done);
  return said(tls, well, done);
}

ssize_t raw_tls_write(void *tls, const void *at, size_t bytes) {
  size_t done = 0;
  const int well = SSL_write_ex(tls, at, bytes, &done);
  return said(tls, well, done);
}
