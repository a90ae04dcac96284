/* test-camera.c - which cameras there are, and one picture from a camera that a file stands for. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-camera.h"
#include "media/ks-worker.h"
#include "tests/media/media-fixture.h"

#include <fcntl.h>
#include <linux/videodev2.h>
#include <sys/mman.h>

#define PAGE 4096

static char *folder;

typedef struct {
  guint32 coding, width, height, stride, n_bytes, mode, state[3]; /* as fake-camera.c reads it */
} Camera;

static void
write_file (const char *path, const char *text)
{
  g_autofree char *parent = g_path_get_dirname (path);

  g_assert_cmpint (g_mkdir_with_parents (parent, 0700), ==, 0);
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
}

static void
add_node (const char *node, const char *name, const char *index, gboolean has_device)
{
  g_autofree char *name_path = g_build_filename (folder, "sys", node, "name", NULL);
  g_autofree char *index_path = g_build_filename (folder, "sys", node, "index", NULL);
  g_autofree char *device = g_build_filename (folder, "dev", node, NULL);

  write_file (name_path, name);
  write_file (index_path, index);
  if (has_device)
    write_file (device, "");
}

/* One entry a camera, in the order of their numbers, with its maker's name; nodes without pictures
 * or without a device are none. */
static void
test_list (void)
{
  g_autofree char *system = g_build_filename (folder, "sys", NULL),
                  *devices = g_build_filename (folder, "dev", NULL);
  g_autoptr (GPtrArray) none = ks_camera_list ("/nonexistent", "/nonexistent"), all = NULL;
  const KsCamera *camera;

  g_assert_cmpuint (none->len, ==, 0);
  add_node ("video10", "Tenth\n", "0\n", TRUE);
  add_node ("video2", "Front \xff camera\n", "0\n", TRUE);
  add_node ("video3", "Front camera\n", "1\n", TRUE);
  add_node ("video4", "Pulled out\n", "0\n", FALSE);
  add_node ("radio0", "A radio\n", "0\n", TRUE);
  add_node ("video5", "\n", "0\n", TRUE);
  all = ks_camera_list (system, devices);
  g_assert_cmpuint (all->len, ==, 3);
  camera = g_ptr_array_index (all, 0);
  g_assert_true (g_str_has_suffix (camera->path, "/dev/video2"));
  g_assert_true (g_utf8_validate (camera->name, -1, NULL));
  g_assert_true (g_str_has_prefix (camera->name, "Front "));
  g_assert_cmpstr (((KsCamera *)g_ptr_array_index (all, 1))->name, ==, "video5");
  g_assert_cmpstr (((KsCamera *)g_ptr_array_index (all, 2))->name, ==, "Tenth");
}

/* The worker that believes fake-camera.c, beside a copy of which its module lies. */
static void
use_fake (void)
{
  g_autofree char *bin = g_build_filename (folder, "bin", NULL),
                  *worker = g_build_filename (bin, "worker", NULL),
                  *module = g_build_filename (bin, "keepsake-camera.so", NULL), *data = NULL;
  g_autoptr (GError) error = NULL;
  gsize n;

  g_assert_cmpint (g_mkdir_with_parents (bin, 0700), ==, 0);
  g_file_get_contents (g_getenv ("KS_CAMERA_WORKER"), &data, &n, &error);
  g_assert_no_error (error);
  g_assert_true (
      g_file_set_contents_full (worker, data, (gssize)n, G_FILE_SET_CONTENTS_NONE, 0700, NULL));
  g_assert_cmpint (symlink (g_getenv ("KS_CAMERA_MODULE"), module), ==, 0);
  g_setenv ("KS_MEDIA_WORKER", worker, TRUE);
}

/* What the worker says of a camera with these pixels. */
static gboolean
capture (Camera camera, const void *pixels, gsize n, KsWorkerResult *out, GError **error)
{
  KsWorkerJob job = {.name = "the camera", .operation = KS_WIRE_CAPTURE};
  gboolean ok;

  job.fd = memfd_create ("camera", MFD_CLOEXEC);
  camera.n_bytes = (guint32)n;
  g_assert_cmpint (ftruncate (job.fd, 65 * PAGE), ==, 0);
  g_assert_cmpint (pwrite (job.fd, &camera, sizeof camera, 0), ==, sizeof camera);
  g_assert_cmpint (pwrite (job.fd, pixels, MIN (n, 64 * PAGE), PAGE), ==, MIN (n, 64 * PAGE));
  ok = ks_worker_run (&job, NULL, out, error);
  g_assert_cmpint (pread (job.fd, &camera, sizeof camera, 0), ==, sizeof camera);
  if (ok)
    g_assert_cmpuint (camera.state[1], ==, 0); /* the light is out */
  close (job.fd);
  assert_no_children ();
  return ok;
}

/* Rows of four pixels, longer than they need be: left white, right black. */
static void
test_capture_pixels (void)
{
  Camera camera = {.coding = V4L2_PIX_FMT_YUYV, .width = 4, .height = 2, .stride = 12};
  static const guint8 rows[24] = {235, 128, 235, 128, 16, 128, 16, 128, 9, 9, 9, 9,
                                  235, 128, 235, 128, 16, 128, 16, 128, 9, 9, 9, 9};
  g_autoptr (GError) error = NULL;
  const guint8 *pixels;
  KsWorkerResult got;

  use_fake ();
  g_assert_true (capture (camera, rows, sizeof rows, &got, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (ks_pixels_get_width (got.pixels), ==, 4);
  g_assert_cmpuint (ks_pixels_get_height (got.pixels), ==, 2);
  pixels = g_bytes_get_data (ks_pixels_get_bytes (got.pixels), NULL);
  g_assert_cmpuint (pixels[16 + 0], >, 250);
  g_assert_cmpuint (pixels[16 + 12], <, 5);
  g_assert_cmpuint (pixels[16 + 15], ==, 255);
  ks_worker_result_clear (&got);
}

/* Everything that a camera can do wrong is a sentence about it. */
static void
test_capture_faults (void)
{
  static const guint8 rows[24];
  static const struct {
    guint32 coding, width, mode, n;
    KsMediaError code;
  } cases[] = {
      {V4L2_PIX_FMT_YUYV, 4, 1, 16, KS_MEDIA_ERROR_FAILED},         /* gives no pictures */
      {V4L2_PIX_FMT_YUYV, 4, 2, 16, KS_MEDIA_ERROR_FAILED},         /* breaks while it is asked */
      {V4L2_PIX_FMT_YUYV, 4, 3, 16, KS_MEDIA_ERROR_FAILED},         /* names a buffer it has not */
      {V4L2_PIX_FMT_H264, 4, 0, 16, KS_MEDIA_ERROR_FAILED},         /* speaks only what we do not */
      {V4L2_PIX_FMT_YUYV, 4, 0, 15, KS_MEDIA_ERROR_DAMAGED},        /* too few bytes */
      {V4L2_PIX_FMT_YUYV, 4, 0, 0, KS_MEDIA_ERROR_FAILED},          /* none */
      {V4L2_PIX_FMT_YUYV, 100000, 0, 16, KS_MEDIA_ERROR_TOO_LARGE}, /* a size that is none */
      {V4L2_PIX_FMT_MJPEG, 4, 0, 16, KS_MEDIA_ERROR_DAMAGED},       /* no JPEG */
  };

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    Camera camera = {.coding = cases[i].coding,
                     .width = cases[i].width,
                     .height = 2,
                     .stride = 8,
                     .mode = cases[i].mode};
    g_autoptr (GError) error = NULL;
    KsWorkerResult got;

    g_test_message ("case %u", i);
    g_assert_false (capture (camera, rows, cases[i].n, &got, &error));
    g_assert_error (error, KS_MEDIA_ERROR, (int)cases[i].code);
    g_assert_nonnull (strstr (error->message, "the camera"));
  }
}

/* What is no device is not even asked. */
static void
test_no_device (void)
{
  g_autofree char *path = g_build_filename (folder, "plain", NULL);
  g_autoptr (GError) error = NULL, missing = NULL;

  write_file (path, "words");
  g_assert_null (ks_camera_capture (path, NULL, NULL, &error));
  g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_FAILED);
  g_assert_nonnull (strstr (error->message, "plain"));
  g_assert_null (ks_camera_capture ("/nonexistent/video0", NULL, NULL, &missing));
  g_assert_error (missing, KS_MEDIA_ERROR, KS_MEDIA_ERROR_FAILED);
}

int
main (int argc, char **argv)
{
  int code;

  g_test_init (&argc, &argv, NULL);
  folder = make_folder ();
  g_test_add_func ("/camera/list", test_list);
  g_test_add_func ("/camera/no-device", test_no_device);
  g_test_add_func ("/camera/pixels", test_capture_pixels);
  g_test_add_func ("/camera/faults", test_capture_faults);
  code = g_test_run ();
  remove_tree (folder);
  g_free (folder);
  return code;
}
