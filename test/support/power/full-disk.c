/*
 * A disk without room, for the files of one folder: loaded with LD_PRELOAD, it refuses each write that would make a file longer, with
 * ENOSPC, while a marker exists. Room that a file has already can be written, as on a disk.
 *
 * FULL_FROM  beginning of the paths of the files
 * FULL_MARK  the marker. Files that are removed while it exists leave their room to others
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes that removed files have left. */
static long room;

static int is_watched(const char *path) {
  const char *from = getenv("FULL_FROM");
  return from && !strncmp(path, from, strlen(from));
}

static int is_refused(int fd, off_t end) {
  const char *mark = getenv("FULL_MARK");
  char link[64], path[PATH_MAX];
  struct stat file;
  if (!mark || access(mark, F_OK) || fstat(fd, &file) || end <= file.st_size) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  if (!is_watched(path)) return 0;
  long wanted = end - file.st_size;
  if (__sync_sub_and_fetch(&room, wanted) >= 0) return 0;
  __sync_add_and_fetch(&room, wanted);
  errno = ENOSPC;
  return 1;
}

ssize_t write(int fd, const void *bytes, size_t count) {
  ssize_t (*real)(int, const void *, size_t) = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
  off_t at = lseek(fd, 0, SEEK_CUR);
  return at >= 0 && is_refused(fd, at + count) ? -1 : real(fd, bytes, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
  ssize_t (*real)(int, const void *, size_t, off_t) = (ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
  return is_refused(fd, at + count) ? -1 : real(fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at) { return pwrite(fd, bytes, count, at); }

int unlink(const char *path) {
  int (*real)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");
  const char *mark = getenv("FULL_MARK");
  struct stat file;
  int counts = mark && is_watched(path) && !access(mark, F_OK) && !stat(path, &file), result = real(path);
  if (result == 0 && counts) __sync_add_and_fetch(&room, file.st_size);
  return result;
}
