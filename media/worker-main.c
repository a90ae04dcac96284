/* worker-main.c - keepsake-media-worker: decodes one file of the user without the user's rights.
 * One process is one request: take it from the socket (descriptor 3), look at the first bytes, load
 * the decoder for that kind, give up all rights, only then read the file and answer.  Started by
 * ks-worker.c; it is of no use by itself.  Source: docs/adr/0011-decoder-worker.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-loader.h"
#include "media/ks-video-sniff.h"
#include "media/ks-worker-sandbox.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The PDF standard lets a file begin with other bytes; readers look this far. */
#define SNIFF_BYTES 1024

#ifdef __SANITIZE_ADDRESS__
/* The environment is empty, and the leak checker needs rights that the filter takes. */
const char *__asan_default_options (void);

const char *
__asan_default_options (void)
{
  return "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=1536:abort_on_error=1";
}
#endif

void
ks_worker_end (int code)
{
  _exit (code);
}

static gboolean
starts_with (const guint8 *data, gsize n, const char *mark, gsize n_mark)
{
  return n >= n_mark && memcmp (data, mark, n_mark) == 0;
}

/* At the very start, or behind bytes that are no text: a source file may well speak of "%PDF-". */
static gboolean
is_pdf (const guint8 *data, gsize n)
{
  const guint8 *mark = memmem (data, n, "%PDF-", 5);

  if (mark == NULL)
    return FALSE;
  for (const guint8 *p = data; p < mark; p++)
    if (*p < 0x20 && strchr ("\t\n\r\f\x1b\b", *p) == NULL)
      return TRUE;
  for (const guint8 *p = data; p < mark; p++)
    if (!g_ascii_isspace (*p) && *p < 0x80)
      return FALSE;
  return TRUE;
}

/* Sizes of the headers that follow a BMP's file header. */
static gboolean
is_bmp (const guint8 *data, gsize n)
{
  static const guint8 sizes[] = {12, 40, 52, 56, 64, 108, 124};

  return starts_with (data, n, "BM", 2) && n >= 18 && data[15] == 0 && data[16] == 0 &&
         data[17] == 0 && memchr (sizes, data[14], sizeof sizes) != NULL;
}

static KsWireWhat
sniff (const guint8 *data, gsize n)
{
  if (is_pdf (data, n))
    return KS_WIRE_PDF;
  if (starts_with (data, n, "\x89PNG\r\n\x1a\n", 8) || starts_with (data, n, "\xff\xd8\xff", 3) ||
      starts_with (data, n, "GIF87a", 6) || starts_with (data, n, "GIF89a", 6) ||
      starts_with (data, n, "II*\0", 4) || starts_with (data, n, "MM\0*", 4) || is_bmp (data, n))
    return KS_WIRE_IMAGE;
  if (starts_with (data, n, "RIFF", 4) && n >= 12 && memcmp (data + 8, "WEBP", 4) == 0)
    return KS_WIRE_IMAGE;
  return ks_video_sniff (data, n) ? KS_WIRE_VIDEO : KS_WIRE_TEXT;
}

static const char *
get_module (const KsLoaderJob *job)
{
  if (job->request->operation == KS_WIRE_CAPTURE)
    return "keepsake-camera.so";
  switch (job->what) {
  case KS_WIRE_PDF:
    return "keepsake-document.so";
  case KS_WIRE_VIDEO:
    return "keepsake-video.so";
  default:
    return "keepsake-image.so";
  }
}

/* The module lies beside this program. */
static const KsLoader *
load_module (const KsLoaderJob *job)
{
  g_autofree char *self = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *folder = self != NULL ? g_path_get_dirname (self) : NULL;
  g_autofree char *path = NULL;
  const KsLoader *loader = NULL;
  void *module;

  if (folder != NULL)
    path = g_build_filename (folder, get_module (job), NULL);
  module = path != NULL ? dlopen (path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (module != NULL)
    loader = dlsym (module, G_STRINGIFY (KS_LOADER_SYMBOL));
  if (loader == NULL)
    ks_answer_fault (KS_WIRE_FAULT_DECODER, job->what, 0);
  return loader;
}

static void
receive_request (KsWireRequest *out_request, int *out_fd)
{
  guint8 data[KS_WIRE_MAX_BYTES];
  guint n_fd;
  gssize n = ks_wire_receive (KS_WIRE_SOCKET_FD, data, out_fd, &n_fd);

  if (n <= 0 || !ks_wire_parse_request (data, (gsize)n, n_fd, out_request))
    ks_worker_end (2);
}

/* What the file is, by its first bytes; ends with a fault when the request is for something else.
 */
static void
look (KsLoaderJob *job)
{
  KsWireOperation operation = job->request->operation;
  guint8 head[SNIFF_BYTES];
  ssize_t n_head;
  struct stat st;

  if (fstat (job->fd, &st) != 0 || !S_ISREG (st.st_mode) || st.st_size < 0)
    ks_answer_fault (KS_WIRE_FAULT_READ, EINVAL, 0);
  job->n_bytes = (guint64)st.st_size;
  n_head = pread (job->fd, head, sizeof head, 0);
  if (n_head < 0)
    ks_answer_fault (KS_WIRE_FAULT_READ, (guint32)errno, 0);
  if (n_head == 0)
    ks_answer_fault (KS_WIRE_FAULT_EMPTY, KS_WIRE_FILE, 0);
  job->what = sniff (head, (gsize)n_head);
  if (operation == KS_WIRE_RENDER && job->what != KS_WIRE_PDF)
    ks_answer_fault (KS_WIRE_FAULT_NO_PAGES, 0, 0);
  if (operation == KS_WIRE_FRAMES && job->what != KS_WIRE_VIDEO)
    ks_answer_fault (KS_WIRE_FAULT_NO_VIDEO, job->what, 0);
}

int
main (void)
{
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
  KsWireRequest request;
  gpointer state = NULL;
  KsLoaderJob job = {.request = &request, .what = KS_WIRE_IMAGE, .state = &state};
  const KsLoader *loader;
  KsWireStep step;
  int code;

  signal (SIGXFSZ, SIG_IGN); /* a write over the limit fails instead */
  receive_request (&request, &job.fd);
  code = ks_sandbox_limit (&request);
  if (code != 0)
    ks_answer_fault (KS_WIRE_FAULT_CONFINED, KS_WIRE_STEP_LIMITS, (guint32)code);
  if (request.operation != KS_WIRE_CAPTURE) /* a camera's file has no beginning */
    look (&job);
  loader = job.what == KS_WIRE_TEXT ? &ks_text_loader : load_module (&job);
  loader->prepare (&job, paths);
  code = ks_sandbox_confine (paths, &step);
  if (code != 0)
    ks_answer_fault (KS_WIRE_FAULT_CONFINED, step, (guint32)code);
  loader->run (&job);
  ks_answer_done ();
}
