/* Moves the clock of a process and of those that it starts by PLAZA_CLOCK_OFFSET_S (tests/clock.py). The monotonic clock
   stays: with faketime of Debian 12, which moves it or breaks sleeping, threads of Python 3.13 wait for ever. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t offset_s(void) {
    static time_t offset;
    static int is_read;
    if (!is_read) {
        const char *text = getenv("PLAZA_CLOCK_OFFSET_S");
        offset = text ? atol(text) : 0;
        is_read = 1;
    }
    return offset;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset_s();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    now->tv_sec = at.tv_sec;
    now->tv_usec = at.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    if (now) *now = at.tv_sec;
    return at.tv_sec;
}

/* The kernel waits until a time of its own clock. A time of the monotonic clock is smaller than any of these. */
static struct timespec of_kernel(const struct timespec *until) {
    struct timespec moved = *until;
    if (moved.tv_sec > 1000000000) moved.tv_sec -= offset_s();
    return moved;
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until) {
    static int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!wait) wait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!wait) wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    struct timespec moved = of_kernel(until);
    return wait(cond, mutex, &moved);
}

int sem_timedwait(sem_t *sem, const struct timespec *until) {
    static int (*wait)(sem_t *, const struct timespec *);
    if (!wait) wait = dlsym(RTLD_NEXT, "sem_timedwait");
    struct timespec moved = of_kernel(until);
    return wait(sem, &moved);
}
