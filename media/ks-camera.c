/* ks-camera.c - see ks-camera.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-camera.h"

#include "media/ks-worker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void
ks_camera_free (KsCamera *camera)
{
  if (camera == NULL)
    return;
  g_free (camera->path);
  g_free (camera->name);
  g_free (camera);
}

/* What the system says in a small file, without the end of the line; NULL = nothing. */
static char *
read_line (const char *system, const char *node, const char *file)
{
  g_autofree char *path = g_build_filename (system, node, file, NULL);
  char *line = NULL;

  if (!g_file_get_contents (path, &line, NULL, NULL))
    return NULL;
  return g_strchomp (line);
}

/* "video7" is 7; -1 = no such name. */
static gint64
get_number (const char *node)
{
  guint64 number;

  if (!g_str_has_prefix (node, "video") ||
      !g_ascii_string_to_unsigned (node + strlen ("video"), 10, 0, 9999, &number, NULL))
    return -1;
  return (gint64)number;
}

static gint
compare_nodes (gconstpointer a, gconstpointer b)
{
  gint64 left = get_number (*(char *const *)a), right = get_number (*(char *const *)b);

  return left < right ? -1 : left > right;
}

GPtrArray *
ks_camera_list (const char *system, const char *devices)
{
  GPtrArray *cameras = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_camera_free);
  g_autoptr (GPtrArray) nodes = g_ptr_array_new_with_free_func (g_free);
  const char *root = system != NULL ? system : "/sys/class/video4linux", *name;
  g_autoptr (GDir) dir = g_dir_open (root, 0, NULL);

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    if (get_number (name) >= 0)
      g_ptr_array_add (nodes, g_strdup (name));
  g_ptr_array_sort (nodes, compare_nodes);
  for (guint i = 0; i < nodes->len; i++) {
    const char *node = g_ptr_array_index (nodes, i);
    g_autofree char *path = g_build_filename (devices != NULL ? devices : "/dev", node, NULL);
    g_autofree char *label = read_line (root, node, "name"),
                    *index = read_line (root, node, "index");
    KsCamera *camera;

    /* One camera has several nodes; the others give its settings or its statistics. */
    if ((index != NULL && !g_str_equal (index, "0")) || access (path, R_OK | W_OK) != 0)
      continue;
    camera = g_new0 (KsCamera, 1);
    camera->name = g_utf8_make_valid (label != NULL && label[0] != '\0' ? label : node, -1);
    camera->path = g_steal_pointer (&path);
    g_ptr_array_add (cameras, camera);
  }
  return cameras;
}

KsPixels *
ks_camera_capture (const char *path, const KsMediaOptions *options, GCancellable *cancellable,
                   GError **error)
{
  g_autofree char *name = NULL;
  KsWorkerJob job = {.operation = KS_WIRE_CAPTURE};
  KsWorkerResult got;
  KsPixels *pixels = NULL;
  struct stat st;

  g_return_val_if_fail (path != NULL, NULL);
  name = options != NULL && options->name != NULL ? g_utf8_make_valid (options->name, -1)
                                                  : g_filename_display_basename (path);
  job.name = name;
  job.max_side_px = options != NULL ? options->max_side_px : 0;
  job.fd = open (path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (job.fd < 0 || fstat (job.fd, &st) != 0 || !S_ISCHR (st.st_mode)) {
    int code = job.fd < 0 ? errno : ENODEV;

    if (job.fd >= 0)
      close (job.fd);
    g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_FAILED,
                 "the camera %s cannot be opened: %s: connect it again, or choose another", name,
                 g_strerror (code));
    return NULL;
  }
  if (ks_worker_run (&job, cancellable, &got, error)) {
    pixels = g_steal_pointer (&got.pixels);
    ks_worker_result_clear (&got);
  }
  close (job.fd);
  return pixels;
}
