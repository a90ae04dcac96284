/* worker-main.c - keepsake-media-worker: decodes one file of the user without the user's rights.
 * One process is one request: take it from the socket (descriptor 3), look at the first bytes, load
 * the decoder for that kind, give up all rights, only then read the file and answer.  Started by
 * ks-worker.c; it is of no use by itself.  Source: docs/adr/0011-decoder-worker.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-loader.h"
#include "media/ks-sniff.h"
#include "media/ks-worker-sandbox.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* The module lies beside this program. */
static const KsLoader *
load_module (const KsSniff *kind)
{
  g_autofree char *self = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *folder = self != NULL ? g_path_get_dirname (self) : NULL;
  g_autofree char *path = NULL;
  const KsLoader *loader = NULL;
  void *module;

  if (folder != NULL)
    path = g_build_filename (folder, kind->module, NULL);
  module = path != NULL ? dlopen (path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (module != NULL)
    loader = dlsym (module, G_STRINGIFY (KS_LOADER_SYMBOL));
  if (loader == NULL)
    ks_answer_fault (KS_WIRE_FAULT_DECODER, kind->what, 0);
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
static const KsSniff *
look (KsLoaderJob *job)
{
  KsWireOperation operation = job->request->operation;
  guint8 head[KS_SNIFF_BYTES];
  const KsSniff *kind;
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
  kind = ks_sniff (head, (gsize)n_head);
  job->what = kind->what;
  if (operation == KS_WIRE_RENDER && job->what != KS_WIRE_PDF && job->what != KS_WIRE_DOCUMENT)
    ks_answer_fault (KS_WIRE_FAULT_NO_PAGES, 0, 0);
  if (operation == KS_WIRE_FRAMES && job->what != KS_WIRE_VIDEO)
    ks_answer_fault (KS_WIRE_FAULT_NO_VIDEO, job->what, 0);
  return kind;
}

/* Some requests say by themselves what is to be done, whatever the file begins with. */
static const KsSniff *
find_kind (KsLoaderJob *job)
{
  static const KsSniff camera = {KS_WIRE_IMAGE, "keepsake-camera.so"};
  static const KsSniff scan = {KS_WIRE_SCAN, "keepsake-ocr.so"};

  if (job->request->operation == KS_WIRE_CAPTURE)
    return &camera;
  if (job->request->operation != KS_WIRE_SCAN_TEXT)
    return look (job);
  /* Tesseract's threads: none may be started here, and its library asks when it is loaded. */
  g_setenv ("OMP_THREAD_LIMIT", "1", TRUE);
  return &scan;
}

int
main (void)
{
  g_autoptr (GPtrArray) paths = g_ptr_array_new_with_free_func (g_free);
  KsWireRequest request;
  gpointer state = NULL;
  KsLoaderJob job = {.request = &request, .what = KS_WIRE_IMAGE, .state = &state};
  const KsLoader *loader;
  const KsSniff *kind;
  KsWireStep step;
  int code;

  signal (SIGXFSZ, SIG_IGN); /* a write over the limit fails instead */
  mallopt (M_ARENA_MAX, 1);  /* a second arena would take 128 MiB of the address space */
  receive_request (&request, &job.fd);
  code = ks_sandbox_limit (&request);
  if (code != 0)
    ks_answer_fault (KS_WIRE_FAULT_CONFINED, KS_WIRE_STEP_LIMITS, (guint32)code);
  kind = find_kind (&job);
  loader = kind->module == NULL ? &ks_text_loader : load_module (kind);
  loader->prepare (&job, paths);
  code = ks_sandbox_confine (paths, loader->may_thread, &step);
  if (code != 0)
    ks_answer_fault (KS_WIRE_FAULT_CONFINED, step, (guint32)code);
  loader->run (&job);
  ks_answer_done ();
}
