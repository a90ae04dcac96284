/* test-reader.c - the bounded cursor, and a mapping whose file is cut under it. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/reader.h"
#include "tests/ks-test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_PAGE 8

/* A temporary file of N_PAGE pages of 'x'; the caller unlinks path. */
static size_t
make_file(char *path)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char *text = malloc(page);
  int fd = mkstemp(path);

  KS_ASSERT(fd >= 0 && text != NULL);
  memset(text, 'x', page);
  for (int i = 0; i < N_PAGE; i++)
    KS_ASSERT_EQ(write(fd, text, page), page);
  close(fd);
  free(text);
  return page;
}

/* Numbers are little-endian; at the end of the data nothing moves and nothing is written. */
KS_TEST(reader, bounds)
{
  static const unsigned char data[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  ks_reader r;
  uint8_t u8;
  uint16_t u16;
  uint32_t u32 = 77;
  uint64_t u64 = 0;
  const unsigned char *p;

  ks_reader_init(&r, data, sizeof data);
  KS_ASSERT(ks_reader_u8(&r, &u8) && u8 == 1);
  KS_ASSERT(ks_reader_u16(&r, &u16) && u16 == 0x0302);
  KS_ASSERT(ks_reader_u64(&r, &u64) && u64 == UINT64_C(0x0b0a090807060504));
  KS_ASSERT_EQ(ks_reader_left(&r), 0);
  KS_ASSERT(!ks_reader_u8(&r, &u8));
  r.pos = 8;
  KS_ASSERT(!ks_reader_u32(&r, &u32) && u32 == 77 && r.pos == 8);
  KS_ASSERT(!ks_reader_skip(&r, UINT64_MAX) && r.pos == 8);
  KS_ASSERT(!ks_reader_bytes(&r, 4, &p));
  KS_ASSERT(ks_reader_bytes(&r, 3, &p) && p == data + 8);
}

/* Only a regular file with content is mapped. */
KS_TEST(map, refuses)
{
  char path[] = "/tmp/ks-test-map-XXXXXX", fifo[sizeof path + 8];
  ks_alloc *a = ks_alloc_new();
  ks_map *map = NULL;
  ks_error err;
  int fd = mkstemp(path);

  close(fd);
  snprintf(fifo, sizeof fifo, "%s.fifo", path);
  KS_ASSERT_EQ(mkfifo(fifo, 0600), 0);
  KS_ASSERT_STATUS(KS_ERR_FORMAT, ks_map_open(a, path, &map, &err));
  KS_ASSERT_STATUS(KS_ERR_FORMAT, ks_map_open(a, fifo, &map, &err)); /* and does not wait */
  KS_ASSERT_STATUS(KS_ERR_FORMAT, ks_map_open(a, "/tmp", &map, &err));
  KS_ASSERT_STATUS(KS_ERR_IO, ks_map_open(a, "/tmp/ks-test/does/not/exist", &map, &err));
  KS_ASSERT(strstr(err.text, "/tmp/ks-test/does/not/exist") != NULL);
  KS_ASSERT(map == NULL);
  unlink(path);
  unlink(fifo);
  ks_alloc_free(a);
}

static void *
sum_bytes(void *map)
{
  const unsigned char *data = ks_map_get_data(map);
  size_t sum = 0;

  for (size_t i = 0; i < ks_map_get_size(map); i++)
    sum += data[i];
  return (void *)sum;
}

/* A file that is cut while mapped gives zeros and the flag, in other threads as well. */
KS_TEST(map, survives_truncation)
{
  char path[] = "/tmp/ks-test-map-XXXXXX";
  size_t page = make_file(path);
  ks_alloc *a = ks_alloc_new();
  ks_map *map, *other;
  pthread_t thread;
  void *sum;

  KS_ASSERT_OK(ks_map_open(a, path, &map, NULL));
  KS_ASSERT_OK(ks_map_open(a, path, &other, NULL));
  KS_ASSERT_EQ(ks_map_get_size(map), N_PAGE * page);
  KS_ASSERT_STR(ks_map_get_path(map), path);
  KS_ASSERT_EQ((size_t)sum_bytes(map), N_PAGE * page * 'x');
  KS_ASSERT(!ks_map_is_lost(map));
  KS_ASSERT_EQ(truncate(path, (off_t)page), 0);
  KS_ASSERT_EQ((size_t)sum_bytes(map), page * 'x');
  KS_ASSERT(ks_map_is_lost(map));
  KS_ASSERT_EQ(pthread_create(&thread, NULL, sum_bytes, other), 0);
  pthread_join(thread, &sum);
  KS_ASSERT_EQ((size_t)sum, page * 'x');
  ks_map_close(other);
  /* The flag stays when the file grows back. */
  KS_ASSERT_EQ(truncate(path, (off_t)(N_PAGE * page)), 0);
  KS_ASSERT(ks_map_is_lost(map));
  ks_map_close(map);
  unlink(path);
  ks_alloc_free(a);
}

/* A cut inside the last page raises no signal; the size tells. */
KS_TEST(map, notices_cut_within_a_page)
{
  char path[] = "/tmp/ks-test-map-XXXXXX";
  size_t page = make_file(path);
  ks_alloc *a = ks_alloc_new();
  ks_map *map;

  KS_ASSERT_OK(ks_map_open(a, path, &map, NULL));
  KS_ASSERT_EQ(truncate(path, (off_t)(N_PAGE * page - 10)), 0);
  KS_ASSERT(ks_map_is_lost(map));
  ks_map_close(map);
  unlink(path);
  ks_alloc_free(a);
}

/* A SIGBUS that is not ours still ends the process, or reaches the handler of before. */
KS_TEST(map, other_faults_pass)
{
  char path[] = "/tmp/ks-test-map-XXXXXX";
  ks_alloc *a = ks_alloc_new();
  ks_map *map;
  int how;
  pid_t child;

  make_file(path);
  KS_ASSERT_OK(ks_map_open(a, path, &map, NULL));
  fflush(stdout);
  child = fork();
  if (child == 0) {
    close(STDERR_FILENO); /* a sanitizer would report the death that is wanted here */
    raise(SIGBUS);
    _exit(0);
  }
  KS_ASSERT_EQ(waitpid(child, &how, 0), child);
  KS_ASSERT(!WIFEXITED(how) || WEXITSTATUS(how) != 0); /* a sanitizer's handler exits with a code */
  ks_map_close(map);
  unlink(path);
  ks_alloc_free(a);
}

/* A failure at any allocation closes what was opened. */
KS_TEST(map, no_memory)
{
  char path[] = "/tmp/ks-test-map-XXXXXX";
  ks_alloc *a = ks_alloc_new();
  ks_map *map = NULL;
  ks_status status;

  make_file(path);
  for (int n = 0;; n++) {
    ks_alloc_fail_after(a, n);
    status = ks_map_open(a, path, &map, NULL);
    if (status == KS_OK)
      break;
    KS_ASSERT_EQ(status, KS_ERR_NOMEM);
    KS_ASSERT(map == NULL);
    KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_HOST), 0);
  }
  ks_map_close(map);
  unlink(path);
  ks_alloc_free(a);
}

KS_TEST_MAIN
