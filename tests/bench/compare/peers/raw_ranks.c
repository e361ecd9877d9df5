/* raw_ranks.c: two ranks over a bare socket, the floor of an all-reduce by TCP: each sends everything to the other, and adds what comes
 * while it comes. "raw_ranks PORT RANK", answers as in ranks.h ("reduce:BYTES"). Waits in between as libuv does. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../ranks.h"

enum { WINDOW = 256 << 10 };

static int other; /* the socket */
static char window[WINDOW];

struct values {
  size_t bytes;
  float *own, *sum;
};

static void must(int well, const char *what) {
  if (well) return;
  perror(what);
  exit(1);
}

static void add(struct values *v, size_t from, size_t upto) {
  const float *const came = (const float *)window;
  const size_t first = from / sizeof(float);
  for (size_t i = first; i < upto / sizeof(float); i++) v->sum[i] = v->own[i] + came[i - first];
}

static void reduce(struct values *v) {
  size_t sent = 0, added = 0, have = 0;
  while (sent < v->bytes || added < v->bytes) {
    struct pollfd wait = {other, (short)((sent < v->bytes ? POLLOUT : 0) | (added < v->bytes ? POLLIN : 0)), 0};
    must(poll(&wait, 1, -1) > 0, "poll");
    if (wait.revents & POLLOUT) {
      const ssize_t done = send(other, (const char *)v->own + sent, v->bytes - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      must(done > 0 || errno == EAGAIN, "send");
      if (done > 0) sent += (size_t)done;
    }
    if (wait.revents & POLLIN) {
      const size_t room = WINDOW - have, left = v->bytes - added - have;
      const ssize_t done = recv(other, window + have, left < room ? left : room, MSG_DONTWAIT);
      must(done > 0 || (done < 0 && errno == EAGAIN), "recv");
      if (done > 0) have += (size_t)done;
      if (have == WINDOW || added + have == v->bytes) {
        add(v, added, added + have);
        added += have;
        have = 0;
      }
    }
  }
}

static void step(void *made) { reduce(made); }

static void meet(void) {
  char letter = 'x';
  must(send(other, &letter, 1, MSG_NOSIGNAL) == 1 && recv(other, &letter, 1, 0) == 1, "meet");
}

static void *make(const char *name, size_t number) {
  struct values *const v = calloc(1, sizeof *v);
  if (strcmp(name, "reduce") != 0) exit(2);
  v->bytes = number;
  v->own = calloc(1, number);
  v->sum = calloc(1, number);
  for (int i = 0; i < 3; i++) reduce(v);
  return v;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  const int rank = atoi(argv[2]), one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const struct sockaddr_in a = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const struct ranks ranks = {make, step, meet};
  if (rank == 0) {
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    must(bind(listener, (const struct sockaddr *)&a, sizeof a) == 0 && listen(listener, 1) == 0, "listen");
    other = accept(listener, NULL, NULL);
  } else {
    other = listener;
    for (int tries = 0; connect(other, (const struct sockaddr *)&a, sizeof a) != 0; tries++) {
      must(tries < 2000, "connect");
      usleep(10000);
    }
  }
  must(other >= 0 && setsockopt(other, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0, "TCP_NODELAY");
  return ranks_serve(&ranks);
}
