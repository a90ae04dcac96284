/* test-worker.c - the worker's rights, limits, lies and ends, seen from the program. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-worker.h"
#include "tests/media/media-fixture.h"

#include <fcntl.h>
#include <seccomp.h>
#include <sys/prctl.h>

typedef struct {
  char *dir, *path; /* a file in it */
} Fixture;

static void
fixture_set_up (Fixture *f, gconstpointer data)
{
  f->dir = make_folder ();
  f->path = g_build_filename (f->dir, "file.txt", NULL);
}

static void
fixture_tear_down (Fixture *f, gconstpointer data)
{
  g_unsetenv ("KS_MEDIA_WORKER");
  assert_no_children ();
  remove_tree (f->dir);
  g_free (f->path);
  g_free (f->dir);
}

static void
write_file (const char *path, const void *data, gsize n)
{
  g_autoptr (GError) error = NULL;

  g_file_set_contents (path, data, (gssize)n, &error);
  g_assert_no_error (error);
}

static guint
count_descriptors (void)
{
  g_autoptr (GDir) dir = g_dir_open ("/proc/self/fd", 0, NULL);
  guint n = 0;

  while (g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

/* Loads f->path, whose content says what the lying worker does. */
static KsMediaResult *
load_lie (Fixture *f, const char *mode, GError **error)
{
  write_file (f->path, mode, strlen (mode));
  g_setenv ("KS_MEDIA_WORKER", g_getenv ("KS_LYING_WORKER"), TRUE);
  return ks_media_load (f->path, NULL, NULL, error);
}

static const char *
find_line (const char *text, const char *name)
{
  g_autofree char *start = g_strdup_printf ("\n%s ", name);
  const char *line = strstr (text, start);

  g_assert_nonnull (line);
  return line + strlen (start);
}

static void
assert_errno (const char *text, const char *name, int want)
{
  int got = (int)g_ascii_strtoll (find_line (text, name), NULL, 10);

  if (got != want)
    g_test_fail_printf ("%s: %s, not %s", name, g_strerror (got), g_strerror (want));
}

/* Nothing that reaches outside works: no network, no writing, no other process, no file but below
 * the allowed folder; and the limits are there.  data: threads may be started; they may no more. */
static void
test_sandbox (Fixture *f, gconstpointer data)
{
  static const char *const refused[] = {
      "write-allowed", "write-null", "append",         "create",   "temporary",   "openat2",
      "unlink",        "rename",     "mkdir",          "chmod",    "symlink",     "truncate",
      "execve",        "execveat",   "fork",           "ptrace",   "kill-parent", "kill-group",
      "vm-read",       "prctl",      "setrlimit",      "unshare",  "setuid",      "socket-inet",
      "socket-unix",   "connect",    "send-elsewhere", "io-uring", "bpf",         "keyctl",
      "ioctl",         "mmap-exec",  "mprotect-exec",  "landlock", "tgkill-other"};
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMediaResult) result = NULL;
  g_autofree char *text = NULL, *asked = g_strconcat (data != NULL ? "+" : "", f->path, NULL);

  write_file (f->path, asked, strlen (asked));
  g_setenv ("KS_MEDIA_WORKER", g_getenv ("KS_PROBE_WORKER"), TRUE);
  result = ks_media_load (f->path, NULL, NULL, &error);
  g_assert_no_error (error);
  text = g_strconcat ("\n", result->text, NULL);
  for (guint i = 0; i < G_N_ELEMENTS (refused); i++)
    assert_errno (text, refused[i], EPERM);
  assert_errno (text, "write-request", EBADF);
  assert_errno (text, "read-allowed", 0);
  assert_errno (text, "memory", 0);
  assert_errno (text, "thread", data != NULL ? 0 : EPERM);
  assert_errno (text, "in-thread", data != NULL ? EPERM : 0);
  if (g_ascii_strtoll (find_line (text, "kernel-has-landlock"), NULL, 10) != 0) {
    assert_errno (text, "read-passwd", EACCES);
    assert_errno (text, "read-proc", EACCES);
    assert_errno (text, "list-root", EACCES);
  }
  g_assert_cmpint (g_ascii_strtoll (find_line (text, "limit-core"), NULL, 10), ==, 0);
  g_assert_cmpint (g_ascii_strtoll (find_line (text, "limit-descriptors"), NULL, 10), ==, 64);
  g_assert_cmpint (g_ascii_strtoll (find_line (text, "limit-cpu"), NULL, 10), ==, 300);
#ifndef __SANITIZE_ADDRESS__
  g_assert_cmpint (g_ascii_strtoll (find_line (text, "limit-address"), NULL, 10), ==, 1536 << 20);
#endif
  g_assert_cmpint (g_file_test (f->path, G_FILE_TEST_IS_REGULAR), ==, TRUE);
}

/* A program that may not set filters (as in some containers): its worker cannot either. */
static void
load_without_filters (const char *path)
{
  scmp_filter_ctx filter = seccomp_init (SCMP_ACT_ALLOW);
  g_autoptr (GError) error = NULL;

  g_assert_cmpint (seccomp_rule_add (filter, SCMP_ACT_ERRNO (EINVAL), SCMP_SYS (seccomp), 0), ==,
                   0);
  g_assert_cmpint (seccomp_rule_add (filter, SCMP_ACT_ERRNO (EINVAL), SCMP_SYS (prctl), 1,
                                     SCMP_A0 (SCMP_CMP_EQ, PR_SET_SECCOMP)),
                   ==, 0);
  g_assert_cmpint (seccomp_load (filter), ==, 0);
  g_assert_null (ks_media_load (path, NULL, NULL, &error));
  g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_WORKER);
  g_assert_nonnull (strstr (error->message, "seccomp"));
  seccomp_release (filter);
}

/* Without the filter nothing is read. */
static void
test_refused_filter (Fixture *f, gconstpointer data)
{
  int status = 0;
  pid_t pid;

  write_file (f->path, "plain", 5);
  pid = fork ();
  g_assert_cmpint (pid, >=, 0);
  if (pid == 0) {
    load_without_filters (f->path);
    _exit (0);
  }
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  g_assert_true (WIFEXITED (status) && WEXITSTATUS (status) == 0);
}

/* Each breach of the protocol is an error, nothing of it is handed out, no descriptor stays. */
static void
test_lies (Fixture *f, gconstpointer data)
{
  static const char *const modes[] = {
      "text-not-sealed",     "text-may-shrink", "text-may-change", "text-short",
      "text-long",           "text-not-utf8",   "text-with-nul",   "text-endless",
      "text-encoding",       "text-pages",      "text-warnings",   "text-no-descriptor",
      "text-device",         "text-socket",     "text-twice",      "pixels-short",
      "pixels-not-sealed",   "pixels-wide",     "pixels-none",     "pixels-over-asked",
      "pixels-after-text",   "pixels-of-page",  "packet-zeros",    "packet-long",
      "packet-cut",          "packet-padded",   "progress-over",   "progress-with-file",
      "done-without-result", "fault-unknown",   "many-files",      "video-no-facts",
      "video-facts-twice",   "video-nothing",   "video-skips",     "video-too-many",
      "video-as-picture",    "video-with-text",
  };
  guint n_fd = count_descriptors ();

  for (guint i = 0; i < G_N_ELEMENTS (modes); i++) {
    g_autoptr (GError) error = NULL;

    g_test_message ("%s", modes[i]);
    g_assert_null (load_lie (f, modes[i], &error));
    g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_WORKER);
    g_assert_nonnull (strstr (error->message, "not acceptable"));
    g_assert_nonnull (strstr (error->message, "file.txt"));
    g_assert_cmpuint (count_descriptors (), ==, n_fd);
    assert_no_children ();
  }
}

/* Frames that nobody asked for, in no order, or without a video are none at all. */
static void
test_frame_lies (Fixture *f, gconstpointer data)
{
  static const char *const modes[] = {
      "video-honest",    "video-no-facts", "video-facts-twice", "video-nothing",   "video-skips",
      "video-goes-back", "video-too-many", "video-as-picture",  "video-with-text", "pixels-of-page",
      "honest"};
  KsMediaSampling wish = {.mode = KS_MEDIA_SAMPLE_COUNT, .n_frames = 2};
  guint n_fd = count_descriptors ();

  g_setenv ("KS_MEDIA_WORKER", g_getenv ("KS_LYING_WORKER"), TRUE);
  for (guint i = 0; i < G_N_ELEMENTS (modes); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (KsMediaResult) facts = NULL;
    g_autoptr (GPtrArray) frames = NULL;

    g_test_message ("%s", modes[i]);
    write_file (f->path, modes[i], strlen (modes[i]));
    frames = ks_media_load_frames (f->path, &wish, NULL, &facts, NULL, &error);
    if (i == 0) {
      g_assert_no_error (error);
      g_assert_cmpuint (frames->len, ==, 2);
      g_assert_cmpint (facts->kind, ==, KS_MEDIA_VIDEO);
      continue;
    }
    g_assert_null (frames);
    g_assert_null (facts);
    g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_WORKER);
    g_assert_nonnull (strstr (error->message, "not acceptable"));
    assert_no_children ();
  }
  g_assert_cmpuint (count_descriptors (), ==, n_fd);
}

/* The same fixture does give a text when it does not lie. */
static void
test_honest (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMediaResult) result = load_lie (f, "honest", &error);

  g_assert_no_error (error);
  g_assert_cmpstr (result->text, ==, "hello");
}

/* A worker that ends in the middle, or cannot be started, gives a sentence. */
static void
test_ends (Fixture *f, gconstpointer data)
{
  static const char *const modes[] = {"nothing", "segv", "close-and-stay"};
  guint n_fd = count_descriptors ();

  for (guint i = 0; i < G_N_ELEMENTS (modes); i++) {
    g_autoptr (GError) error = NULL;

    g_assert_null (load_lie (f, modes[i], &error));
    g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_WORKER);
    g_assert_nonnull (strstr (error->message, "stopped while it read file.txt"));
    assert_no_children ();
  }
  for (guint i = 0; i < 2; i++) {
    g_autoptr (GError) error = NULL;

    g_setenv ("KS_MEDIA_WORKER", i == 0 ? "/nonexistent/worker" : f->path, TRUE);
    g_assert_null (ks_media_load (f->path, NULL, NULL, &error));
    g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_WORKER);
  }
  g_assert_cmpuint (count_descriptors (), ==, n_fd);
}

/* The text of a document stays when only the picture of its first page is lost. */
static void
test_keeps_text (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMediaResult) result = load_lie (f, "text-then-end", &error);

  g_assert_no_error (error);
  g_assert_cmpint (result->kind, ==, KS_MEDIA_PDF);
  g_assert_cmpstr (result->text, ==, "hello");
  g_assert_null (result->pixels);
  g_assert_nonnull (strstr (result->warning, "first page"));
}

/* Runs the lying worker under limits; gives the seconds it took. */
static double
run_limited (Fixture *f, const char *mode, const KsWorkerLimits *limits, GError **error)
{
  KsWorkerJob job = {.name = "file.txt", .operation = KS_WIRE_LOAD, .limits = limits};
  gint64 begin_us = g_get_monotonic_time ();
  KsWorkerResult result;

  write_file (f->path, mode, strlen (mode));
  if (g_getenv ("KS_MEDIA_WORKER") == NULL)
    g_setenv ("KS_MEDIA_WORKER", g_getenv ("KS_LYING_WORKER"), TRUE);
  job.fd = open (f->path, O_RDONLY | O_CLOEXEC);
  g_assert_cmpint (job.fd, >=, 0);
  g_assert_false (ks_worker_run (&job, NULL, &result, error));
  close (job.fd);
  assert_no_children ();
  return (double)(g_get_monotonic_time () - begin_us) / 1e6;
}

/* Silence, endless talk and endless work all end in time. */
static void
test_time_limits (Fixture *f, gconstpointer data)
{
  KsWorkerLimits stall = ks_worker_default_limits, total = stall, cpu = stall;
  g_autoptr (GError) stall_error = NULL, total_error = NULL, cpu_error = NULL;

  stall.stall_ms = 300;
  g_assert_cmpfloat (run_limited (f, "sleep", &stall, &stall_error), <, 20);
  g_assert_error (stall_error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_TOO_LARGE);
  total.total_ms = 500;
  g_assert_cmpfloat (run_limited (f, "chatter", &total, &total_error), <, 15);
  g_assert_error (total_error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_TOO_LARGE);
  cpu.cpu_s = 1;
  g_setenv ("KS_MEDIA_WORKER", g_getenv ("KS_SPINNING_WORKER"), TRUE);
  g_assert_cmpfloat (run_limited (f, "spin", &cpu, &cpu_error), <, 50);
  g_assert_error (cpu_error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_TOO_LARGE);
  g_assert_nonnull (strstr (cpu_error->message, "1 seconds"));
}

/* More memory than allowed: a sentence that names the limit. */
static void
test_memory_limit (Fixture *f, gconstpointer data)
{
#ifdef __SANITIZE_ADDRESS__
  g_test_skip ("AddressSanitizer reserves terabytes: the address space is not limited here");
#else
  KsWorkerLimits limits = ks_worker_default_limits;
  KsWorkerJob job = {.name = "file.txt", .operation = KS_WIRE_LOAD, .limits = &limits};
  gsize n = 60 * 1024 * 1024;
  g_autofree char *text = g_malloc (n);
  g_autoptr (GError) error = NULL;
  KsWorkerResult result;

  memset (text, 'x', n);
  write_file (f->path, text, n);
  limits.memory_bytes = 100 * 1024 * 1024;
  job.fd = open (f->path, O_RDONLY | O_CLOEXEC);
  g_assert_false (ks_worker_run (&job, NULL, &result, &error));
  g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_TOO_LARGE);
  g_assert_nonnull (strstr (error->message, "100 MiB"));
  g_clear_error (&error);
  limits.memory_bytes = 400 * 1024 * 1024;
  g_assert_true (ks_worker_run (&job, NULL, &result, &error));
  g_assert_no_error (error);
  ks_worker_result_clear (&result);
  close (job.fd);
#endif
}

static void
cancel_cb (guint n_done, guint n_total, gpointer user)
{
  g_cancellable_cancel (user);
}

/* Cancelling ends a worker that would sleep for a minute at once; one that was cancelled before is
 * not even started. */
static void
test_cancel (Fixture *f, gconstpointer data)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  KsMediaOptions options = {.progress = cancel_cb, .user = cancellable};
  gint64 begin_us = g_get_monotonic_time ();

  write_file (f->path, "sleep", 5);
  g_setenv ("KS_MEDIA_WORKER", g_getenv ("KS_LYING_WORKER"), TRUE);
  for (guint i = 0; i < 2; i++) {
    g_autoptr (GError) error = NULL;

    g_assert_null (ks_media_load (f->path, &options, cancellable, &error));
    g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_CANCELLED);
    assert_no_children ();
    g_setenv ("KS_MEDIA_WORKER", "/nonexistent/worker", TRUE);
  }
  g_assert_cmpint (g_get_monotonic_time () - begin_us, <, 20 * G_USEC_PER_SEC);
}

static gpointer
load_often (gpointer data)
{
  g_autofree char *text = g_strdup_printf ("thread %u says hello\n", GPOINTER_TO_UINT (data));
  g_autoptr (GBytes) bytes = g_bytes_new (text, strlen (text));

  for (guint i = 0; i < 5; i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (KsMediaResult) result = ks_media_load_bytes (bytes, NULL, NULL, &error);

    g_assert_no_error (error);
    g_assert_cmpstr (result->text, ==, text);
  }
  return NULL;
}

/* Workers side by side do not get each other's answers. */
static void
test_threads (Fixture *f, gconstpointer data)
{
  guint n_fd = count_descriptors ();
  GThread *threads[4];

  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    threads[i] = g_thread_new ("load", load_often, GUINT_TO_POINTER (i));
  for (guint i = 0; i < G_N_ELEMENTS (threads); i++)
    g_thread_join (threads[i]);
  g_assert_cmpuint (count_descriptors (), ==, n_fd);
}

#define ADD(name, func)                                                                            \
  g_test_add ("/worker/" name, Fixture, NULL, fixture_set_up, func, fixture_tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("sandbox", test_sandbox);
  g_test_add ("/worker/sandbox-with-threads", Fixture, "+", fixture_set_up, test_sandbox,
              fixture_tear_down);
  ADD ("refused-filter", test_refused_filter);
  ADD ("lies", test_lies);
  ADD ("frame-lies", test_frame_lies);
  ADD ("honest", test_honest);
  ADD ("ends", test_ends);
  ADD ("keeps-text", test_keeps_text);
  ADD ("time-limits", test_time_limits);
  ADD ("memory-limit", test_memory_limit);
  ADD ("cancel", test_cancel);
  ADD ("threads", test_threads);
  return g_test_run ();
}
