/* raw_tls.h: TLS for raw.c. A connection is made while its socket blocks; afterwards read and write do what recv and send do. */
#ifndef DTG_BENCH_RAW_TLS_H
#define DTG_BENCH_RAW_TLS_H

#include <fcntl.h>
#include <sys/types.h>

void *raw_tls_accept(int fd);
void *raw_tls_connect(int fd);
ssize_t raw_tls_read(void *tls, void *at, size_t bytes);
ssize_t raw_tls_write(void *tls, const void *at, size_t bytes);

static inline int fcntl_nonblocking(int fd) { return fcntl(fd, F_SETFL, O_NONBLOCK) == 0; }

#endif
