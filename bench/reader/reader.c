// The bare reader: the least that any client of an event stream can do. One
// epoll loop, recvmsg with the kernel's receive stamps, and nothing but
// counting. Its CPU time per event is what Pitot's is divided by.
//
// usage: reader PORT STREAMS REQUESTS TOKENS [SPREAD]
//
// With SPREAD the streams begin evenly over so many microseconds, else at once.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/net_tstamp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct stream { int fd; char tail[4]; };

static char request[512];
static int request_len;
static long to_send;

static void ask(struct stream *s) {
	memset(s->tail, 0, sizeof s->tail);
	if (write(s->fd, request, request_len) != request_len) { perror("write"); exit(1); }
	to_send--;
}

static double micros(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

int main(int argc, char **argv) {
	if (argc < 5) { fprintf(stderr, "usage: reader PORT STREAMS REQUESTS TOKENS [SPREAD]\n"); return 2; }
	double spread = argc > 5 ? atof(argv[5]) : 0;
	int port = atoi(argv[1]), n = atoi(argv[2]);
	long want = atol(argv[3]), done = 0, reads = 0, bytes = 0;
	to_send = want;
	char body[256];
	int body_len = sprintf(body, "{\"model\":\"reference\",\"prompt\":\"a\",\"max_tokens\":%d,\"stream\":true,\"stream_options\":{\"include_usage\":true}}", atoi(argv[4]));
	request_len = sprintf(request, "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", body_len, body);
	int ep = epoll_create1(0);
	struct stream *streams = calloc(n, sizeof *streams);
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
	for (int i = 0; i < n; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&to, sizeof to)) { perror("connect"); return 1; }
		int stamps = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
		setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof stamps);
		streams[i].fd = fd;
		struct epoll_event e = {.events = EPOLLIN, .data.ptr = &streams[i]};
		epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e);
	}
	double begin = micros();
	for (int i = 0; i < n && to_send > 0; i++) {
		while (spread > 0 && micros() < begin + spread * i / n) {}
		ask(&streams[i]);
	}
	static char buf[65536];
	char control[256];
	struct epoll_event events[1024];
	while (done < want) {
		int k = epoll_wait(ep, events, 1024, -1);
		for (int i = 0; i < k; i++) {
			struct stream *s = events[i].data.ptr;
			struct iovec iov = {buf, sizeof buf};
			struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
			ssize_t got = recvmsg(s->fd, &m, MSG_DONTWAIT);
			if (got <= 0) { fprintf(stderr, "connection lost\n"); return 1; }
			reads++;
			bytes += got;
			if (got >= 4) memcpy(s->tail, buf + got - 4, 4);
			else { memmove(s->tail, s->tail + got, 4 - got); memcpy(s->tail + 4 - got, buf, got); }
			if (!memcmp(s->tail, "\r\n\r\n", 4) && got >= 5 && buf[got - 5] == '0') {
				done++;
				if (to_send > 0) ask(s);
			}
		}
	}
	printf("%ld answers, %ld reads, %ld bytes\n", done, reads, bytes);
	return 0;
}
