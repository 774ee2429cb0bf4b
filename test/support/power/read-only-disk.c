/*
 * A disk that can be mounted read-only, for the files of one folder: loaded with LD_PRELOAD, it refuses to open a file for writing and each
 * write to an open one, with EROFS, while a marker exists. A folder without write permission is refused to everybody but root; this to root, too.
 *
 * READ_ONLY_FROM  beginning of the paths of the files
 * READ_ONLY_MARK  the marker
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_refused(const char *path) {
  const char *from = getenv("READ_ONLY_FROM"), *mark = getenv("READ_ONLY_MARK");
  if (!from || !mark || strncmp(path, from, strlen(from)) || access(mark, F_OK)) return 0;
  errno = EROFS;
  return 1;
}

static int is_refused_file(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return is_refused(path);
}

/* The real function of that name, for a call with the arguments of this one. */
#define REAL(name, result, ...) ((result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))

static int may_write(int flags) { return (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC); }

#define OPEN(name)                                                                   \
  int name(const char *path, int flags, ...) {                                       \
    va_list more;                                                                    \
    va_start(more, flags);                                                           \
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;                        \
    va_end(more);                                                                    \
    if (may_write(flags) && is_refused(path)) return -1;                             \
    return REAL(#name, int, const char *, int, ...)(path, flags, mode);              \
  }
OPEN(open)
OPEN(open64)

ssize_t write(int fd, const void *bytes, size_t count) {
  return is_refused_file(fd) ? -1 : REAL("write", ssize_t, int, const void *, size_t)(fd, bytes, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
  return is_refused_file(fd) ? -1 : REAL("pwrite", ssize_t, int, const void *, size_t, off_t)(fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at) { return pwrite(fd, bytes, count, at); }

int ftruncate(int fd, off_t length) { return is_refused_file(fd) ? -1 : REAL("ftruncate", int, int, off_t)(fd, length); }

int ftruncate64(int fd, off_t length) { return ftruncate(fd, length); }

int unlink(const char *path) { return is_refused(path) ? -1 : REAL("unlink", int, const char *)(path); }
