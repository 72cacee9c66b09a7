// Moves the clock of the programs that it is loaded into (LD_PRELOAD) by as many seconds
// as GO_CLOCK_OFFSET says. libfaketime is no use here: while a process waits in
// epoll_wait, it shows signal handlers the real time, and PostgreSQL's timeouts, which
// one of them looks after, never come.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset;

__attribute__((constructor)) static void read_offset(void) {
	const char *text = getenv("GO_CLOCK_OFFSET");
	if (text)
		offset = atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *at) {
	int failed = syscall(SYS_clock_gettime, clock, at);
	if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		at->tv_sec += offset;
	return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
	struct timespec now;
	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &now))
		return -1;
	at->tv_sec = now.tv_sec;
	at->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *at) {
	struct timespec now;
	if (clock_gettime(CLOCK_REALTIME_COARSE, &now))
		return -1;
	if (at)
		*at = now.tv_sec;
	return now.tv_sec;
}
