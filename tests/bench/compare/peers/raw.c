/* raw.c: bare sockets, the floor of everything that travels by TCP: "raw serve PORT SECURITY", "raw client PORT SECURITY" (see
 * turns.h; SECURITY is clear or tls, which is TLS 1.3 with TLS_AES_128_GCM_SHA256 and a pre-shared key).
 *
 * A request is 64 bytes: a letter ('e' echo, 'l' pull, 's' push) and a count of bytes. The answer to a pull is those bytes, to
 * the others 64. The server is one thread with epoll; bytes are read straight into their place. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../turns.h"
#include "raw_tls.h"

enum { MESSAGE = 64, MOST = 64 << 20, PEERS = 128 };

struct request {
  char what[8];
  uint64_t bytes;
  char rest[MESSAGE - 16];
};

/* One end of a connection. What it reads or writes next is `at` to `end`; a server has one of them at a time. */
struct end {
  int fd;
  void *tls; /* NULL: in the clear */
  struct request request;
  char *at, *end;
  enum { REQUEST, BODY, ANSWER } now;
};

static char *variable; /* what is pulled and pushed */
static char *copy;     /* of it, for the floor of what one host needs not send at all */

static void must(int well, const char *what) {
  if (well) return;
  perror(what);
  exit(1);
}

/* As much as goes without waiting; 0 when the other end has left. */
static int move(struct end *end, int out) {
  while (end->at < end->end) {
    const size_t left = (size_t)(end->end - end->at);
    ssize_t done;
    if (end->tls) done = out ? raw_tls_write(end->tls, end->at, left) : raw_tls_read(end->tls, end->at, left);
    else done = out ? send(end->fd, end->at, left, MSG_NOSIGNAL) : recv(end->fd, end->at, left, 0);
    if (done == 0) return 0;
    if (done < 0) return errno == EAGAIN;
    end->at += done;
  }
  return 1;
}

static void expect(struct end *end, int now, void *at, size_t bytes) {
  end->now = now;
  end->at = at;
  end->end = end->at + bytes;
}

/* ---- the server ---- */

/* Goes on until it would have to wait; 0 when the connection is over. */
static int serve_some(struct end *end) {
  for (;;) {
    if (!move(end, end->now == ANSWER)) return 0;
    if (end->at < end->end) return 1;
    if (end->now == ANSWER) expect(end, REQUEST, &end->request, MESSAGE);
    else if (end->now == BODY) expect(end, ANSWER, &end->request, MESSAGE);
    else if (end->request.bytes > MOST) return 0;
    else if (end->request.what[0] == 's') expect(end, BODY, variable, end->request.bytes);
    else if (end->request.what[0] == 'l') expect(end, ANSWER, variable, end->request.bytes);
    else expect(end, ANSWER, &end->request, MESSAGE);
  }
}

static int be_quick(int fd) {
  const int one = 1;
  return setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0;
}

static void welcome(int listener, int epoll, int tls) {
  const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) return;
  struct end *end = calloc(1, sizeof *end);
  struct epoll_event event = {EPOLLIN | EPOLLOUT | EPOLLET, {.ptr = end}};
  end->fd = fd;
  must(be_quick(fd), "TCP_NODELAY");
  if (tls) end->tls = raw_tls_accept(fd); /* the handshake still blocks */
  must(fcntl_nonblocking(fd), "O_NONBLOCK");
  expect(end, REQUEST, &end->request, MESSAGE);
  must(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

static struct sockaddr_in address(const char *port) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  return a;
}

static int serve(const char *port, int tls) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), epoll = epoll_create1(EPOLL_CLOEXEC), one = 1;
  const struct sockaddr_in a = address(port);
  struct epoll_event events[PEERS], wanted = {EPOLLIN, {.ptr = NULL}}, input = {EPOLLIN, {.ptr = events}};
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  must(bind(listener, (const struct sockaddr *)&a, sizeof a) == 0 && listen(listener, PEERS) == 0, "listen");
  must(epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &wanted) == 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &input) == 0, "epoll_ctl");
  printf("ready\n");
  fflush(stdout);
  for (;;) {
    const int count = epoll_wait(epoll, events, PEERS, -1);
    for (int i = 0; i < count; i++) {
      struct end *end = events[i].data.ptr;
      if (!end) welcome(listener, epoll, tls);
      else if (end == (void *)events) return 0; /* the end of the input */
      else if (!serve_some(end)) close(end->fd);
    }
  }
}

/* ---- a client ---- */

static const char *to_port;
static int with_tls;
static struct workload {
  struct end end;
  struct request ask;
  size_t body, back;
} w;

static void *make(const struct turns_workload *which) {
  const struct sockaddr_in a = address(to_port);
  if (!strcmp(which->name, "copy")) {
    copy = malloc(MOST);
    w.body = which->bytes;
    return &w;
  }
  w.end.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  must(connect(w.end.fd, (const struct sockaddr *)&a, sizeof a) == 0 && be_quick(w.end.fd), "connect");
  if (with_tls) w.end.tls = raw_tls_connect(w.end.fd);
  w.ask.what[0] = !strcmp(which->name, "pull") ? 'l' : !strcmp(which->name, "push") ? 's' : 'e';
  w.ask.bytes = which->bytes;
  w.body = w.ask.what[0] == 's' ? which->bytes : 0;
  w.back = w.ask.what[0] == 'l' ? which->bytes : MESSAGE;
  must(fcntl_nonblocking(w.end.fd), "O_NONBLOCK");
  return &w;
}

/* Waits in between as libuv does. */
static void all(void *at, size_t bytes, int out) {
  struct pollfd wait = {w.end.fd, out ? POLLOUT : POLLIN, 0};
  expect(&w.end, 0, at, bytes);
  for (;;) {
    must(move(&w.end, out), "the server has left");
    if (w.end.at == w.end.end) return;
    poll(&wait, 1, -1);
  }
}

static void step(void *made) {
  (void)made;
  if (copy) {
    memcpy(copy, variable, w.body);
    return;
  }
  all(&w.ask, MESSAGE, 1);
  if (w.body) all(variable, w.body, 1);
  all(variable, w.back, 0);
}

int main(int argc, char **argv) {
  const struct turns turns = {make, step};
  if (argc != 4) return 2;
  variable = malloc(MOST);
  memset(variable, 1, MOST);
  to_port = argv[2];
  with_tls = !strcmp(argv[3], "tls");
  return !strcmp(argv[1], "serve") ? serve(argv[2], with_tls) : turns_serve(&turns);
}
