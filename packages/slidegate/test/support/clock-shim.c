/*
 * Preloaded into a process, shifts its wall clock by the number of microseconds in CLOCK_SHIM_FILE.
 * The first eight bytes of the file are the number, and may change at any time. The monotonic clock isn't shifted, as
 * on a machine whose clock is set.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset_us;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

/* Runs before main. Without the shim, every test of clock steps would pass, so the process must not start. */
__attribute__((constructor)) static void open_shim(void) {
  const char *path = getenv("CLOCK_SHIM_FILE");
  int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  void *page = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset_us, PROT_READ, MAP_SHARED, file, 0);
  real_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  if (page == MAP_FAILED || real_clock_gettime == NULL) _exit(120);
  close(file);
  offset_us = page;
}

static int64_t wall_us(void) {
  struct timespec now;
  real_clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + *offset_us;
}

int clock_gettime(clockid_t id, struct timespec *out) {
  /* Libraries that are loaded earlier may read the time too. */
  if (real_clock_gettime == NULL)
    real_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  if ((id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE) || offset_us == NULL)
    return real_clock_gettime(id, out);
  int64_t now_us = wall_us();
  out->tv_sec = now_us / 1000000;
  out->tv_nsec = now_us % 1000000 * 1000;
  return 0;
}

int gettimeofday(struct timeval *out, void *zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}
