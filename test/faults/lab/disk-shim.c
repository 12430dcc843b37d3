/*
 * Stands between a process and its disk, by LD_PRELOAD, for the files below the folder DISK_FOLDER.
 *
 * DISK_TRACE    the file to which every operation is appended, with its data, in order and
 *               before it returns
 * DISK_FAULT    kind:number:error:times:suffix, such as "write:3:EIO:once:-wal": the third write
 *               to a file whose name ends so fails, "once" or from then "on". Counted anew when
 *               the variable changes.
 * DISK_STRIKES  the file to which a byte is appended for each operation that was made to fail
 * DISK_SYNC_MS  how long each sync takes
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MOST_FILES 4096
#define REAL(name) ((__typeof__(&name))find_real(#name))

enum { CREATE = 1, WRITE, TRUNCATE, SYNC, UNLINK, RENAME, MAKE_FOLDER, FAILED_SYNC };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *paths[MOST_FILES];
static struct stat files[MOST_FILES];
static char counted_fault[128];
static long counted;

static void *find_real(const char *name) { return dlsym(RTLD_NEXT, name); }

static int ends_with(const char *text, const char *end) {
  size_t length = strlen(text), end_length = strlen(end);
  return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static int is_ours(const char *path) {
  const char *folder = getenv("DISK_FOLDER");
  return folder && path && strncmp(path, folder, strlen(folder)) == 0;
}

// Node.js closes files past this library: a descriptor may be another file or a socket by now.
static const char *path_of(int file) {
  struct stat now;
  if (file < 0 || file >= MOST_FILES || !paths[file] || fstat(file, &now) != 0) return NULL;
  return now.st_dev == files[file].st_dev && now.st_ino == files[file].st_ino ? paths[file] : NULL;
}

static void append(const char *variable, const struct iovec *parts, int count) {
  const char *path = getenv(variable);
  if (!path) return;
  int file = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  // One call, so that a reader never sees half a record. A trace with a gap would prove nothing.
  size_t bytes = 0;
  for (int part = 0; part < count; part++) bytes += parts[part].iov_len;
  if (file < 0 || REAL(writev)(file, parts, count) != (ssize_t)bytes) abort();
  REAL(close)(file);
}

struct head {
  uint32_t kind, path_length;
  uint64_t offset, length;
};

static void record(uint32_t kind, const char *path, uint64_t offset, const void *data,
                   uint64_t length) {
  // Memory that processes share does not outlive them.
  if (ends_with(path, "-shm")) return;
  struct head head = {kind, strlen(path), offset, length};
  struct iovec parts[] = {
      {&head, sizeof head},
      {(void *)path, head.path_length},
      {(void *)data, length},
  };
  append("DISK_TRACE", parts, 3);
}

/* The error with which this operation must fail, or 0. */
static int strike(const char *kind, const char *path) {
  const char *fault = getenv("DISK_FAULT");
  char wanted[16], error[16], times[8], suffix[64] = "";
  long number;
  if (!fault) return 0;
  if (strcmp(fault, counted_fault) != 0) {
    snprintf(counted_fault, sizeof counted_fault, "%s", fault);
    counted = 0;
  }
  const char *form = "%15[^:]:%ld:%15[^:]:%7[^:]:%63s";
  if (sscanf(fault, form, wanted, &number, error, times, suffix) < 4) return 0;
  if (strcmp(wanted, kind) != 0 || !ends_with(path, suffix)) return 0;
  counted++;
  if (counted < number || (counted > number && strcmp(times, "on") != 0)) return 0;
  struct iovec mark = {"!", 1};
  append("DISK_STRIKES", &mark, 1);
  return strcmp(error, "ENOSPC") == 0 ? ENOSPC : EIO;
}

static int finish(int result, int error) {
  pthread_mutex_unlock(&lock);
  if (error) errno = error;
  return error ? -1 : result;
}

static int open_noted(const char *name, int folder, const char *path, int flags, mode_t mode) {
  int (*real)(int, const char *, int, ...) = find_real(name);
  if (!is_ours(path)) return real(folder, path, flags, mode);
  pthread_mutex_lock(&lock);
  struct stat before;
  int existed = stat(path, &before) == 0;
  int file = real(folder, path, flags, mode);
  if (file >= 0 && file < MOST_FILES) {
    free(paths[file]);
    paths[file] = strdup(path);
    fstat(file, &files[file]);
    if (!existed) record(CREATE, path, 0, NULL, 0);
    if (existed && flags & O_TRUNC) record(TRUNCATE, path, 0, NULL, 0);
  }
  return finish(file, 0);
}

#define READ_MODE \
  va_list rest; \
  va_start(rest, flags); \
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
  va_end(rest)

int open(const char *path, int flags, ...) {
  READ_MODE;
  return open_noted("openat", AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  READ_MODE;
  return open_noted("openat64", AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
  READ_MODE;
  return open_noted("openat", folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) {
  READ_MODE;
  return open_noted("openat64", folder, path, flags, mode);
}

int close(int file) {
  if (path_of(file)) {
    pthread_mutex_lock(&lock);
    free(paths[file]);
    paths[file] = NULL;
    pthread_mutex_unlock(&lock);
  }
  return REAL(close)(file);
}

static ssize_t write_at(int file, const void *data, size_t length, off64_t offset) {
  pthread_mutex_lock(&lock);
  int error = strike("write", paths[file]);
  ssize_t written = error ? -1 : REAL(pwrite64)(file, data, length, offset);
  if (written > 0) record(WRITE, paths[file], offset, data, written);
  pthread_mutex_unlock(&lock);
  if (error) errno = error;
  return written;
}

ssize_t pwrite64(int file, const void *data, size_t length, off64_t offset) {
  if (path_of(file)) return write_at(file, data, length, offset);
  return REAL(pwrite64)(file, data, length, offset);
}

ssize_t pwrite(int file, const void *data, size_t length, off_t offset) {
  return pwrite64(file, data, length, offset);
}

ssize_t write(int file, const void *data, size_t length) {
  if (!path_of(file)) return REAL(write)(file, data, length);
  int is_appending = fcntl(file, F_GETFL) & O_APPEND;
  off64_t offset = lseek64(file, 0, is_appending ? SEEK_END : SEEK_CUR);
  ssize_t written = write_at(file, data, length, offset);
  if (written > 0) lseek64(file, offset + written, SEEK_SET);
  return written;
}

int ftruncate64(int file, off64_t length) {
  const char *path = path_of(file);
  if (!path) return REAL(ftruncate64)(file, length);
  pthread_mutex_lock(&lock);
  int error = strike("truncate", path);
  int result = error ? -1 : REAL(ftruncate64)(file, length);
  if (result == 0) record(TRUNCATE, path, length, NULL, 0);
  return finish(result, error);
}

int ftruncate(int file, off_t length) { return ftruncate64(file, length); }

static int sync_noted(int file, int (*real)(int)) {
  const char *path = path_of(file), *slow = getenv("DISK_SYNC_MS");
  if (!path) return real(file);
  long slow_ms = slow ? atol(slow) : 0;
  nanosleep(&(struct timespec){slow_ms / 1000, slow_ms % 1000 * 1000000L}, NULL);
  pthread_mutex_lock(&lock);
  int error = strike("fsync", path);
  int result = error ? -1 : real(file);
  record(result == 0 ? SYNC : FAILED_SYNC, path, 0, NULL, 0);
  return finish(result, error);
}

int fsync(int file) { return sync_noted(file, REAL(fsync)); }
int fdatasync(int file) { return sync_noted(file, REAL(fdatasync)); }

int unlink(const char *path) {
  if (!is_ours(path)) return REAL(unlink)(path);
  pthread_mutex_lock(&lock);
  int result = REAL(unlink)(path);
  if (result == 0) record(UNLINK, path, 0, NULL, 0);
  return finish(result, 0);
}

int rename(const char *from, const char *to) {
  if (!is_ours(to)) return REAL(rename)(from, to);
  pthread_mutex_lock(&lock);
  int result = REAL(rename)(from, to);
  if (result == 0) record(RENAME, from, 0, to, strlen(to));
  return finish(result, 0);
}

int mkdir(const char *path, mode_t mode) {
  if (!is_ours(path)) return REAL(mkdir)(path, mode);
  pthread_mutex_lock(&lock);
  int result = REAL(mkdir)(path, mode);
  if (result == 0) record(MAKE_FOLDER, path, 0, NULL, 0);
  return finish(result, 0);
}
