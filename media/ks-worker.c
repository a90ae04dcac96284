/* ks-worker.c - see ks-worker.h.
 * posix_spawn instead of fork: the program has threads.  The child gets the socket as descriptor 3
 * and nothing above it, an environment of one line, a process group of its own (Ctrl-C is answered
 * by the program, which then kills it) and default signals. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEEDED_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

const KsWorkerLimits ks_worker_default_limits = {
    .memory_bytes = G_GUINT64_CONSTANT (1536) << 20,
    .cpu_s = 300,
    .stall_ms = 60 * 1000,
    .total_ms = 600 * 1000,
};

#define TICK_MS 250 /* between two words about a job that works silently */

typedef struct {
  const KsWorkerJob *job;
  const KsWorkerLimits *limits;
  pid_t pid; /* 0 = none, or waited for */
  int socket_fd;
  gboolean lied;
  gint64 end_us, silent_us; /* when to give up */
  guint n_done, n_total;    /* as the worker told it last */
  guint64 n_bytes;          /* of all pictures */
  KsWorkerResult result;
} Run;

void
ks_worker_result_clear (KsWorkerResult *result)
{
  g_clear_pointer (&result->text, g_free);
  g_clear_pointer (&result->pixels, ks_pixels_unref);
  g_clear_pointer (&result->frames, g_ptr_array_unref);
  g_clear_pointer (&result->part, g_bytes_unref);
  g_clear_pointer (&result->lost, g_free);
  result->has_text = result->has_pixels = result->has_video = FALSE;
}

char *
ks_worker_dup_program (void)
{
  const char *asked = g_getenv ("KS_MEDIA_WORKER");
  g_autofree char *self = NULL;

  if (asked != NULL && asked[0] != '\0')
    return g_strdup (asked);
  self = g_file_read_link ("/proc/self/exe", NULL);
  if (self != NULL && g_str_has_prefix (self, KS_BUILD_ROOT "/"))
    return g_strdup (KS_BUILD_ROOT "/media/keepsake-media-worker");
  return g_strdup (KS_WORKER_PROGRAM);
}

/* What the child runs with: nothing of the user's, but what a sanitizer's report needs. */
static char **
make_environment (void)
{
  char **env = g_environ_setenv (NULL, "LC_ALL", "C.UTF-8", TRUE);

#ifdef __SANITIZE_ADDRESS__
  for (guint i = 0; i < 2; i++) {
    const char *name = i == 0 ? "ASAN_OPTIONS" : "UBSAN_OPTIONS", *value = g_getenv (name);

    if (value != NULL)
      env = g_environ_setenv (env, name, value, TRUE);
  }
#endif
  return env;
}

static int
add_file_actions (posix_spawn_file_actions_t *actions, int socket_fd)
{
  int code = posix_spawn_file_actions_addopen (actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);

  if (code == 0)
    code = posix_spawn_file_actions_adddup2 (actions, STDIN_FILENO, STDOUT_FILENO);
#ifndef __SANITIZE_ADDRESS__ /* a sanitizer's report has to reach the log */
  if (code == 0)
    code = posix_spawn_file_actions_adddup2 (actions, STDIN_FILENO, STDERR_FILENO);
#endif
  if (code == 0)
    code = posix_spawn_file_actions_adddup2 (actions, socket_fd, KS_WIRE_SOCKET_FD);
  if (code == 0)
    code = posix_spawn_file_actions_addclosefrom_np (actions, KS_WIRE_SOCKET_FD + 1);
  return code;
}

static int
spawn (const char *program, int socket_fd, pid_t *out_pid)
{
  g_auto (GStrv) env = make_environment ();
  char *args[] = {(char *)program, NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attr;
  sigset_t none, all;
  int code;

  sigemptyset (&none);
  sigfillset (&all);
  posix_spawn_file_actions_init (&actions);
  posix_spawnattr_init (&attr);
  posix_spawnattr_setsigmask (&attr, &none);
  posix_spawnattr_setsigdefault (&attr, &all);
  posix_spawnattr_setpgroup (&attr, 0);
  posix_spawnattr_setflags (&attr,
                            POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  code = add_file_actions (&actions, socket_fd);
  if (code == 0)
    code = posix_spawn (out_pid, program, &actions, &attr, args, env);
  posix_spawnattr_destroy (&attr);
  posix_spawn_file_actions_destroy (&actions);
  return code;
}

/* A copy above 3 and the standard streams, so that no file action overwrites what a later one
 * needs. */
static int
move_up (int fd)
{
  int moved = fcntl (fd, F_DUPFD_CLOEXEC, KS_WIRE_SOCKET_FD + 1);

  close (fd);
  return moved;
}

static gboolean
start (Run *run, GError **error)
{
  g_autofree char *program = ks_worker_dup_program ();
  int pair[2], code;

  if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_WORKER,
                 "the decoder cannot be started: %s: close other programs and try again",
                 g_strerror (errno));
    return FALSE;
  }
  run->socket_fd = pair[0];
  pair[1] = move_up (pair[1]);
  code = pair[1] >= 0 ? spawn (program, pair[1], &run->pid) : errno;
  if (pair[1] >= 0)
    close (pair[1]);
  if (code != 0) {
    run->pid = 0;
    g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_WORKER,
                 "the decoder %s cannot be started: %s: install Keepsake again", program,
                 g_strerror (code));
    return FALSE;
  }
  return TRUE;
}

/* Ends the worker if it has not ended; its wait status, -1 when that is not to be had.  The kernel
 * counts the memory from before the program was exchanged as well: it is that of the starter. */
static int
reap (Run *run, gboolean by_force)
{
  struct rusage usage = {0};
  int status = -1;
  pid_t pid;

  if (run->pid == 0)
    return -1;
  if (by_force)
    kill (run->pid, SIGKILL);
  do
    pid = wait4 (run->pid, &status, 0, &usage);
  while (pid < 0 && errno == EINTR);
  run->pid = 0;
  if (pid > 0 && run->job->out_peak_bytes != NULL)
    *run->job->out_peak_bytes = (guint64)usage.ru_maxrss * 1024;
  return pid > 0 ? status : -1;
}

static void
set_slow_error (GError **error, const KsWorkerJob *job, guint seconds)
{
  g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_TOO_LARGE,
               "%s cannot be read within the limit of %u seconds: attach a smaller or simpler part "
               "of it",
               job->name, seconds);
}

/* The worker closed its end without a last word. */
static void
set_ended_error (Run *run, GError **error)
{
  int status;

  /* It may have closed the socket only: a moment to end, then by force. */
  siginfo_t info = {0};
  for (guint i = 0;
       i < 50 && waitid (P_PID, (id_t)run->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
       info.si_pid == 0;
       i++)
    g_usleep (2000);
  status = reap (run, TRUE);
  if (status != -1 && WIFSIGNALED (status) && WTERMSIG (status) == SIGXCPU) {
    set_slow_error (error, run->job, run->limits->cpu_s);
    return;
  }
  g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_WORKER,
               "the decoder stopped while it read %s: the file is damaged, or needs more than the "
               "limit of %" G_GUINT64_FORMAT " MiB of memory",
               run->job->name, run->limits->memory_bytes >> 20);
}

static void
set_nonsense_error (Run *run, GError **error)
{
  run->lied = TRUE;
  g_set_error (
      error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_WORKER,
      "the decoder gave an answer about %s that is not acceptable, and was stopped: do not "
      "use this file",
      run->job->name);
}

typedef struct {
  void *data;
  gsize n;
} Mapping;

static void
mapping_free (gpointer data)
{
  Mapping *mapping = data;

  munmap (mapping->data, mapping->n);
  g_free (mapping);
}

/* Maps what the worker handed over: sealed, so that it can neither change nor shrink under us, and
 * of exactly the size that was announced. */
static GBytes *
map_result (int fd, gsize n)
{
  int seals = fcntl (fd, F_GET_SEALS);
  struct stat st;
  Mapping *mapping;
  void *data;

  if (seals < 0 || (seals & NEEDED_SEALS) != NEEDED_SEALS || fstat (fd, &st) != 0 ||
      !S_ISREG (st.st_mode) || st.st_size < 0 || (guint64)st.st_size != n)
    return NULL;
  if (n == 0)
    return g_bytes_new_static ("", 0);
  data = mmap (NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED)
    return NULL;
  mapping = g_new (Mapping, 1);
  *mapping = (Mapping){data, n};
  return g_bytes_new_with_free_func (data, n, mapping_free, mapping);
}

/* Pixels become text of a scan, files all other text; nothing becomes both. */
static gboolean
is_text_due (const Run *run, const KsWireAnswer *answer)
{
  KsWireOperation operation = run->job->operation;

  if (run->result.has_text || run->result.has_pixels || run->result.has_video ||
      run->result.part != NULL)
    return FALSE;
  return answer->what == KS_WIRE_SCAN ? operation == KS_WIRE_SCAN_TEXT : operation == KS_WIRE_LOAD;
}

static gboolean
take_part (Run *run, const KsWireAnswer *answer, int fd)
{
  KsWorkerResult *result = &run->result;

  if (result->part != NULL || result->has_text || result->has_pixels ||
      run->job->operation != KS_WIRE_RENDER)
    return FALSE;
  result->part = map_result (fd, (gsize)answer->n_bytes);
  return result->part != NULL;
}

static gboolean
take_text (Run *run, const KsWireAnswer *answer, int fd)
{
  KsWorkerResult *result = &run->result;
  g_autoptr (GBytes) bytes = map_result (fd, (gsize)answer->n_bytes);
  gsize n = 0;
  const char *data = bytes != NULL ? g_bytes_get_data (bytes, &n) : NULL;

  if (bytes == NULL || !is_text_due (run, answer) ||
      !g_utf8_validate_len (data != NULL ? data : "", n, NULL))
    return FALSE;
  result->text = g_try_malloc (n + 1);
  if (result->text == NULL)
    return FALSE;
  if (n > 0)
    memcpy (result->text, data, n);
  result->text[n] = '\0';
  result->answer_text = *answer;
  result->has_text = TRUE;
  return TRUE;
}

/* A page comes behind its document's text, or alone when it was asked for; a video's frames come
 * behind what it is; everything else comes once. */
static gboolean
is_due (const Run *run, const KsWireAnswer *answer)
{
  const KsWorkerResult *result = &run->result;
  KsWireOperation operation = run->job->operation;

  switch (answer->what) {
  case KS_WIRE_PDF:
    return !result->has_pixels &&
           (result->has_text ? result->answer_text.what == KS_WIRE_PDF
                             : operation == KS_WIRE_RENDER && result->part == NULL);
  case KS_WIRE_IMAGE:
    return !result->has_pixels && !result->has_text && !result->has_video &&
           (operation == KS_WIRE_LOAD || operation == KS_WIRE_CAPTURE);
  case KS_WIRE_VIDEO:
    return result->has_video &&
           (operation == KS_WIRE_FRAMES ||
            (operation == KS_WIRE_LOAD && !result->has_pixels && answer->index == 0));
  default:
    return FALSE;
  }
}

/* Takes pixels over as the next of many: their order is the promise of ks-media.h. */
static gboolean
add_frame (Run *run, const KsWireAnswer *answer, KsPixels *pixels)
{
  KsWorkerResult *result = &run->result;
  guint n = result->frames != NULL ? result->frames->len : 0;
  const KsMediaFrame *last = n > 0 ? g_ptr_array_index (result->frames, n - 1) : NULL;
  KsMediaFrame *frame;

  if (answer->index != n || n >= run->job->sampling.n_frames ||
      (last != NULL && answer->time_us <= last->time_us)) {
    ks_pixels_unref (pixels);
    return FALSE;
  }
  if (result->frames == NULL)
    result->frames = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_media_frame_free);
  frame = g_new (KsMediaFrame, 1);
  *frame = (KsMediaFrame){pixels, answer->index, answer->time_us};
  g_ptr_array_add (result->frames, frame);
  return TRUE;
}

static gboolean
take_pixels (Run *run, const KsWireAnswer *answer, int fd)
{
  KsWorkerResult *result = &run->result;
  guint max = run->job->max_side_px;
  g_autoptr (GBytes) bytes = NULL;
  KsPixels *pixels;

  if (!is_due (run, answer) || answer->width_px > max || answer->height_px > max)
    return FALSE;
  run->n_bytes += answer->n_bytes;
  if (run->n_bytes > KS_WIRE_MAX_TOTAL_BYTES)
    return FALSE;
  bytes = map_result (fd, (gsize)answer->n_bytes);
  pixels = bytes != NULL ? ks_pixels_new (answer->width_px, answer->height_px, bytes) : NULL;
  if (pixels == NULL)
    return FALSE;
  if (run->job->operation == KS_WIRE_FRAMES)
    return add_frame (run, answer, pixels);
  result->pixels = pixels;
  result->answer_pixels = *answer;
  result->has_pixels = TRUE;
  return TRUE;
}

static gboolean
take_video (Run *run, const KsWireAnswer *answer)
{
  KsWorkerResult *result = &run->result;
  KsWireOperation operation = run->job->operation;

  if (result->has_video || result->has_text || result->has_pixels ||
      (operation != KS_WIRE_LOAD && operation != KS_WIRE_FRAMES))
    return FALSE;
  result->answer_video = *answer;
  result->has_video = TRUE;
  return TRUE;
}

/* One packet.  *out_last: nothing more is to come. */
static gboolean
take_answer (Run *run, gboolean *out_last, GError **error)
{
  const KsWorkerJob *job = run->job;
  guint8 data[KS_WIRE_MAX_BYTES];
  KsWireAnswer answer;
  gboolean ok = TRUE;
  guint n_fd;
  int fd;
  gssize n = ks_wire_receive (run->socket_fd, data, &fd, &n_fd);

  *out_last = FALSE;
  if (n == 0 || (n < 0 && errno == ECONNRESET)) {
    set_ended_error (run, error);
    return FALSE;
  }
  if (n < 0 || !ks_wire_parse_answer (data, (gsize)n, n_fd, &answer)) {
    ok = FALSE;
  } else if (answer.type == KS_WIRE_ANSWER_TEXT) {
    ok = take_text (run, &answer, fd);
  } else if (answer.type == KS_WIRE_ANSWER_PIXELS) {
    ok = take_pixels (run, &answer, fd);
  } else if (answer.type == KS_WIRE_ANSWER_PART) {
    ok = take_part (run, &answer, fd);
  } else if (answer.type == KS_WIRE_ANSWER_VIDEO) {
    ok = take_video (run, &answer);
  } else if (answer.type == KS_WIRE_DONE) {
    ok = run->result.has_text || run->result.has_pixels || run->result.frames != NULL ||
         run->result.part != NULL;
    *out_last = TRUE;
  }
  if (fd >= 0)
    close (fd);
  if (!ok) {
    set_nonsense_error (run, error);
    return FALSE;
  }
  if (answer.type == KS_WIRE_ANSWER_FAULT) {
    ks_worker_set_fault (error, &answer, job);
    return FALSE;
  }
  if (answer.type == KS_WIRE_PROGRESS && job->progress != NULL) {
    run->n_done = answer.n_done;
    run->n_total = answer.n_total;
    job->progress (run->n_done, run->n_total, job->user);
  }
  return TRUE;
}

static gboolean
set_cancelled (GCancellable *cancellable, const KsWorkerJob *job, GError **error)
{
  if (!g_cancellable_is_cancelled (cancellable))
    return FALSE;
  g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_CANCELLED, "reading %s was cancelled",
               job->name);
  return TRUE;
}

/* Waits until the worker says something.  FALSE: cancelled, or out of time. */
static gboolean
wait_for_answer (Run *run, GCancellable *cancellable, GPollFD *cancel_fd, GError **error)
{
  struct pollfd fds[2] = {{.fd = run->socket_fd, .events = POLLIN},
                          {.fd = cancel_fd != NULL ? cancel_fd->fd : -1, .events = POLLIN}};

  for (;;) {
    gint64 now_us = g_get_monotonic_time (), end_us = MIN (run->end_us, run->silent_us);
    int n;

    if (set_cancelled (cancellable, run->job, error))
      return FALSE;
    if (now_us >= end_us) {
      guint limit_ms =
          run->end_us <= run->silent_us ? run->limits->total_ms : run->limits->stall_ms;

      set_slow_error (error, run->job, MAX (limit_ms / 1000, 1));
      return FALSE;
    }
    n = poll (
        fds, G_N_ELEMENTS (fds),
        (int)MIN ((end_us - now_us) / 1000 + 1, run->job->progress != NULL ? TICK_MS : 60 * 1000));
    if (n > 0 && fds[0].revents != 0 && fds[1].revents == 0)
      return TRUE;
    if (n == 0 && run->job->progress != NULL) /* it goes on: whoever shows that can show it */
      run->job->progress (run->n_done, run->n_total, run->job->user);
  }
}

static gboolean
send_request (Run *run, GError **error)
{
  const KsWorkerJob *job = run->job;
  KsWireRequest request = {.operation = job->operation,
                           .page = job->page,
                           .max_side_px = job->max_side_px,
                           .cpu_s = run->limits->cpu_s,
                           .memory_bytes = run->limits->memory_bytes,
                           .sampling = job->sampling};
  guint8 data[KS_WIRE_MAX_BYTES];
  gsize n;

  if (job->password != NULL)
    g_strlcpy (request.password, job->password, sizeof request.password);
  n = ks_wire_build_request (&request, data);
  if (ks_wire_send (run->socket_fd, data, n, job->fd))
    return TRUE;
  set_ended_error (run, error);
  return FALSE;
}

static gboolean
converse (Run *run, GCancellable *cancellable, GError **error)
{
  GPollFD cancel_fd;
  gboolean has_fd = g_cancellable_make_pollfd (cancellable, &cancel_fd), last = FALSE, ok;

  ok = send_request (run, error);
  while (ok && !last) {
    ok = wait_for_answer (run, cancellable, has_fd ? &cancel_fd : NULL, error) &&
         take_answer (run, &last, error);
    run->silent_us = g_get_monotonic_time () + (gint64)run->limits->stall_ms * 1000;
  }
  if (has_fd)
    g_cancellable_release_fd (cancellable);
  return ok;
}

/* A document's text is worth keeping when only the picture of its first page failed. */
static gboolean
keep_text (Run *run, GError **local)
{
  if (run->lied || !run->result.has_text || run->result.answer_text.what != KS_WIRE_PDF ||
      run->result.has_pixels || g_error_matches (*local, KS_MEDIA_ERROR, KS_MEDIA_ERROR_CANCELLED))
    return FALSE;
  run->result.lost = g_strdup ((*local)->message);
  g_clear_error (local);
  return TRUE;
}

gboolean
ks_worker_run (const KsWorkerJob *job, GCancellable *cancellable, KsWorkerResult *out,
               GError **error)
{
  KsWorkerJob own = *job;
  gint64 now_us = g_get_monotonic_time ();
  Run run = {.job = &own, .socket_fd = -1};
  g_autoptr (GError) local = NULL;
  gboolean ok;

  memset (out, 0, sizeof *out);
  if (own.max_side_px == 0)
    own.max_side_px = 2048;
  own.max_side_px = MIN (own.max_side_px, KS_WIRE_MAX_SIDE_PX);
  run.limits = job->limits != NULL ? job->limits : &ks_worker_default_limits;
  run.end_us = now_us + (gint64)run.limits->total_ms * 1000;
  run.silent_us = now_us + (gint64)run.limits->stall_ms * 1000;
  ok = !set_cancelled (cancellable, job, &local) && start (&run, &local) &&
       converse (&run, cancellable, &local);
  reap (&run, TRUE);
  if (run.socket_fd >= 0)
    close (run.socket_fd);
  if (!ok && !keep_text (&run, &local)) {
    ks_worker_result_clear (&run.result);
    g_propagate_error (error, g_steal_pointer (&local));
    return FALSE;
  }
  *out = run.result;
  return TRUE;
}
