/* test-decoders.c - what a decoder in the real worker can do at most: a hostile one, one that needs
 * too much memory, one that is missing. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-worker.h"
#include "tests/media/media-fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static const char *const tries[] = {"socket", "unix socket", "create",     "read",
                                    "exec",   "fork",        "executable", "change"};

typedef struct {
  char *folder, *png;
} Fixture;

static void
fixture_set_up (Fixture *f, gconstpointer data)
{
  f->folder = make_files ("pictures");
  f->png = g_build_filename (f->folder, "column.png", NULL);
}

static void
fixture_tear_down (Fixture *f, gconstpointer data)
{
  g_unsetenv ("KS_MEDIA_WORKER");
  assert_no_children ();
  remove_tree (f->folder);
  g_free (f->png);
  g_free (f->folder);
}

static void
copy_file (const char *from, const char *to)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *data = NULL;
  gsize n;

  g_file_get_contents (from, &data, &n, &error);
  g_assert_no_error (error);
  g_file_set_contents (to, data, (gssize)n, &error);
  g_assert_no_error (error);
  g_assert_cmpint (chmod (to, 0700), ==, 0);
}

/* A copy of the real worker in the folder of the test, which has no modules. (transfer full) */
static char *
copy_worker (Fixture *f)
{
  g_autofree char *worker = ks_worker_dup_program ();
  char *copy = g_build_filename (f->folder, "keepsake-media-worker", NULL);

  copy_file (worker, copy);
  g_setenv ("KS_MEDIA_WORKER", copy, TRUE);
  return copy;
}

/* The module runs where a decoder runs: no network, no file, no program, no new code; the user's
 * file stays as it was. */
static void
test_hostile (Fixture *f, gconstpointer data)
{
  g_autofree char *worker = copy_worker (f), *before = NULL, *after = NULL;
  g_autofree char *module = g_build_filename (f->folder, "keepsake-image.so", NULL);
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMediaResult) result = NULL;
  long landlock = syscall (444, NULL, 0, 1);
  const guint8 *codes;

  copy_file (g_getenv ("KS_HOSTILE_MODULE"), module);
  g_assert_true (g_file_get_contents (f->png, &before, NULL, NULL));
  result = ks_media_load (f->png, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (result->width_px, ==, G_N_ELEMENTS (tries));
  codes = g_bytes_get_data (ks_pixels_get_bytes (result->pixels), NULL);
  for (guint i = 0; i < G_N_ELEMENTS (tries); i++) {
    g_test_message ("%s: %s", tries[i], g_strerror (codes[4 * i]));
    if (landlock >= 1 || !g_str_equal (tries[i], "read"))
      g_assert_cmpuint (codes[4 * i], !=, 0);
  }
  g_assert_true (g_file_get_contents (f->png, &after, NULL, NULL));
  g_assert_cmpstr (before, ==, after);
  g_assert_false (g_file_test ("/tmp/keepsake-hostile", G_FILE_TEST_EXISTS));
}

/* Without its module a kind of file cannot be read; the sentence says what to do. */
static void
test_missing (Fixture *f, gconstpointer data)
{
  g_autofree char *worker = copy_worker (f);
  g_autoptr (GError) error = NULL;

  g_assert_null (ks_media_load (f->png, NULL, NULL, &error));
  g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_WORKER);
  g_assert_nonnull (strstr (error->message, "install Keepsake again"));
}

/* A picture that does not fit the limit of memory is a sentence with that limit, whichever decoder
 * runs into it. */
static void
test_memory (Fixture *f, gconstpointer data)
{
#ifdef __SANITIZE_ADDRESS__
  g_test_skip ("AddressSanitizer reserves terabytes: the address space is not limited here");
#else
  static const char *const names[][2] = {
      {"png", "largest.png"}, {"jpeg", "nearly-all-missing.jpg"}, {"webp", "largest.webp"}};
  KsWorkerLimits limits = ks_worker_default_limits;

  limits.memory_bytes = 256 << 20;
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *folder = make_files (names[i][0]);
    g_autofree char *path = g_build_filename (folder, names[i][1], NULL);
    guint64 peak_bytes = 0;
    KsWorkerJob job = {.name = names[i][1],
                       .operation = KS_WIRE_LOAD,
                       .limits = &limits,
                       .out_peak_bytes = &peak_bytes};
    g_autoptr (GError) error = NULL;
    KsWorkerResult result;

    job.fd = open (path, O_RDONLY | O_CLOEXEC);
    g_assert_false (ks_worker_run (&job, NULL, &result, &error));
    close (job.fd);
    g_test_message ("%s: %s", names[i][1], error->message);
    g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_TOO_LARGE);
    g_assert_nonnull (strstr (error->message, "256 MiB"));
    g_assert_cmpuint (peak_bytes, >, 0);
    g_assert_cmpuint (peak_bytes, <=, limits.memory_bytes);
    remove_tree (folder);
  }
#endif
}

#define ADD(name, func)                                                                            \
  g_test_add ("/decoders/" name, Fixture, NULL, fixture_set_up, func, fixture_tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("hostile", test_hostile);
  ADD ("missing", test_missing);
  ADD ("memory", test_memory);
  return g_test_run ();
}
