/* test-video.c - what videos give: facts, the frames wished for, their real times, the right way
 * up; and what cut, unfinished, silent and hostile ones give.  The files: make-videos.c. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-worker.h"
#include "tests/media/media-fixture.h"

#include <fcntl.h>
#include <stdlib.h>

#define SLACK_US 20000 /* sound may begin before the first frame, and is where time begins */

static char *folder;

static void
make_videos (void)
{
  g_autoptr (GError) error = NULL;
  const char *args[] = {g_getenv ("KS_MAKE_VIDEOS"), folder, NULL};
  int status = -1;

  g_assert_nonnull (args[0]);
  g_spawn_sync (NULL, (char **)args, NULL, G_SPAWN_DEFAULT, NULL, NULL, NULL, NULL, &status,
                &error);
  g_assert_no_error (error);
  g_assert_cmpint (status, ==, 0);
}

static char *
dup_path (const char *name)
{
  return g_build_filename (folder, name, NULL);
}

static gboolean
exists (const char *name)
{
  g_autofree char *path = dup_path (name);

  return g_file_test (path, G_FILE_TEST_EXISTS);
}

static GPtrArray *
load (const char *name, const KsMediaSampling *sampling, KsMediaResult **out_facts, GError **error)
{
  g_autofree char *path = dup_path (name);
  GPtrArray *frames = ks_media_load_frames (path, sampling, NULL, out_facts, NULL, error);

  assert_no_children ();
  return frames;
}

static const guint8 *
get_pixel (KsPixels *pixels, guint x, guint y)
{
  const guint8 *bytes = g_bytes_get_data (ks_pixels_get_bytes (pixels), NULL);

  g_assert_cmpuint (x, <, ks_pixels_get_width (pixels));
  g_assert_cmpuint (y, <, ks_pixels_get_height (pixels));
  return bytes + 4 * ((gsize)y * ks_pixels_get_width (pixels) + x);
}

/* The number that a frame shows (make-videos.c: brightness 40 + 6 a frame, of 16 to 235). */
static int
get_number (KsPixels *pixels)
{
  const guint8 *pixel =
      get_pixel (pixels, ks_pixels_get_width (pixels) / 2, ks_pixels_get_height (pixels) / 2);

  g_assert_cmpuint (pixel[3], ==, 255);
  return (int)(((pixel[1] * 219 + 127) / 255 + 16 - 40 + 3) / 6);
}

static gboolean
is_red (KsPixels *pixels, guint x, guint y)
{
  const guint8 *pixel = get_pixel (pixels, x, y);

  return pixel[0] > 200 && pixel[1] < 60 && pixel[2] < 60;
}

static void
assert_frame (GPtrArray *frames, guint i, int number, gint64 time_ms)
{
  const KsMediaFrame *frame = g_ptr_array_index (frames, i);

  g_assert_cmpuint (frame->index, ==, i);
  g_assert_cmpint (get_number (frame->pixels), ==, number);
  g_assert_cmpint (ABS (frame->time_us - time_ms * 1000), <=, SLACK_US);
}

/* In every container: the length, the number of frames, whether there is sound, and the frames of a
 * wish are exactly those that are shown at its times. */
static void
test_containers (void)
{
  static const char *const optional[] = {"h264.mp4", "h265.mp4", "vp8.webm",
                                         "vp9.webm", "av1.mp4",  NULL};
  static const struct {
    const char *name;
    guint n_frames;
    gboolean has_sound;
  } cases[] = {{"plain.mp4", 30, FALSE}, {"sound.mp4", 20, TRUE},   {"front.mp4", 30, FALSE},
               {"h265.mp4", 30, FALSE},  {"vp8.webm", 30, FALSE},   {"vp9.webm", 30, FALSE},
               {"av1.mp4", 30, FALSE},   {"pieces.mp4", 30, FALSE}, {"h264.mp4", 30, FALSE},
               {"plain.mkv", 30, FALSE}, {"plain.avi", 30, FALSE},  {"late.ts", 30, TRUE},
               {"plain.flv", 30, FALSE}, {"plain.mov", 30, FALSE}};
  KsMediaSampling wish = {.mode = KS_MEDIA_SAMPLE_INTERVAL, .n_frames = 100, .interval_us = 700000};

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (KsMediaResult) facts = NULL;
    g_autoptr (GPtrArray) frames = NULL;

    g_test_message ("%s", cases[i].name);
    if (!exists (cases[i].name)) {
      /* Only encoders of other libraries may be missing. */
      g_assert_true (g_strv_contains (optional, cases[i].name));
      continue;
    }
    frames = load (cases[i].name, &wish, &facts, &error);
    g_assert_no_error (error);
    g_assert_cmpint (facts->kind, ==, KS_MEDIA_VIDEO);
    g_assert_null (facts->warning);
    g_assert_null (facts->pixels);
    g_assert_cmpuint (facts->n_frames, ==, cases[i].n_frames);
    g_assert_cmpint (facts->has_sound, ==, cases[i].has_sound);
    g_assert_cmpuint (facts->width_px, ==, 96);
    g_assert_cmpuint (facts->height_px, ==, 64);
    g_assert_cmpint (ABS (facts->duration_us - cases[i].n_frames * 100000), <=, 150000);
    g_assert_cmpuint (frames->len, ==, (cases[i].n_frames - 1) / 7 + 1);
    for (guint k = 0; k < frames->len; k++)
      assert_frame (frames, k, (int)k * 7, (gint64)k * 700);
  }
}

/* Without a clock, or where only some frames have a time, frames are counted and come in order. */
static void
test_clockless (void)
{
  static const char *const names[] = {"raw.m4v", "plain.mpg"};
  KsMediaSampling wish = {.mode = KS_MEDIA_SAMPLE_COUNT, .n_frames = 30};

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (KsMediaResult) facts = NULL;
    g_autoptr (GPtrArray) frames = load (names[i], &wish, &facts, &error);
    int last = -1;

    g_assert_no_error (error);
    g_test_message ("%s: %u", names[i], frames->len);
    g_assert_cmpuint (facts->n_frames, ==, 30);
    g_assert_cmpuint (frames->len, >=, 25);
    for (guint k = 0; k < frames->len; k++) {
      const KsMediaFrame *frame = g_ptr_array_index (frames, k);

      g_assert_cmpint (get_number (frame->pixels), >, last);
      last = get_number (frame->pixels);
    }
    g_assert_cmpint (last, ==, 29);
  }
}

/* Loading gives the facts and the first frame, without a wish, and says how far it is. */
static void
progress_cb (guint n_done, guint n_total, gpointer user)
{
  g_assert_cmpuint (n_done, <=, n_total);
  *(guint *)user += 1;
}

static void
test_load (void)
{
  g_autofree char *path = dup_path ("late.ts");
  guint n_call = 0;
  KsMediaOptions options = {.max_side_px = 48, .progress = progress_cb, .user = &n_call};
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMediaResult) result = ks_media_load (path, &options, NULL, &error);

  g_assert_no_error (error);
  g_assert_cmpint (result->kind, ==, KS_MEDIA_VIDEO);
  g_assert_cmpuint (ks_pixels_get_width (result->pixels), ==, 48);
  g_assert_cmpuint (ks_pixels_get_height (result->pixels), ==, 32);
  g_assert_cmpint (get_number (result->pixels), ==, 0);
  g_assert_cmpuint (result->width_px, ==, 96);
  g_assert_cmpuint (result->n_frames, ==, 30);
  g_assert_null (result->text);
  g_assert_cmpuint (n_call, >, 0);
}

/* Where frames lie unevenly, their own times come out, and a wish for a time gives what is shown.
 */
static void
test_uneven (void)
{
  KsMediaSampling wish = {.mode = KS_MEDIA_SAMPLE_COUNT, .n_frames = 50};
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) all = load ("uneven.mkv", &wish, NULL, &error), some = NULL, slides = NULL;

  g_assert_no_error (error);
  g_assert_cmpuint (all->len, ==, 5); /* at no time of the wish are 40 and 1000 ms shown */
  assert_frame (all, 0, 0, 0);
  assert_frame (all, 1, 2, 80);
  assert_frame (all, 4, 6, 9000);
  wish =
      (KsMediaSampling){.mode = KS_MEDIA_SAMPLE_INTERVAL, .n_frames = 50, .interval_us = 3000000};
  some = load ("uneven.mkv", &wish, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (some->len, ==, 4);
  assert_frame (some, 1, 4, 1040);
  assert_frame (some, 2, 5, 5000);
  assert_frame (some, 3, 6, 9000);
  slides = load ("slides.mp4", &wish, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (slides->len, ==, 2); /* 24 seconds in, the second is still there */
  assert_frame (slides, 1, 1, 10000);
}

/* Each of the eight ways a camera can be held: the red corner is up and left again. */
static void
test_turned (void)
{
  static const struct {
    const char *name;
    guint width, height, x, y;
  } cases[] = {{"plain.mp4", 96, 64, 8, 8},      {"turned-2.mp4", 96, 64, 88, 8},
               {"turned-3.mp4", 96, 64, 88, 56}, {"turned-4.mp4", 96, 64, 8, 56},
               {"turned-5.mp4", 64, 96, 8, 8},   {"turned-6.mp4", 64, 96, 56, 8},
               {"turned-7.mp4", 64, 96, 56, 88}, {"turned-8.mp4", 64, 96, 8, 88}};

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *path = dup_path (cases[i].name);
    g_autoptr (GError) error = NULL;
    g_autoptr (KsMediaResult) result = ks_media_load (path, NULL, NULL, &error);

    g_assert_no_error (error);
    g_test_message ("%s", cases[i].name);
    g_assert_cmpuint (result->width_px, ==, cases[i].width);
    g_assert_cmpuint (result->height_px, ==, cases[i].height);
    g_assert_cmpuint (ks_pixels_get_width (result->pixels), ==, cases[i].width);
    g_assert_true (is_red (result->pixels, cases[i].x, cases[i].y));
    g_assert_false (
        is_red (result->pixels, cases[i].width - 1 - cases[i].x, cases[i].height - 1 - cases[i].y));
  }
}

/* Pixels that are wide become square ones. */
static void
test_aspect (void)
{
  g_autofree char *path = dup_path ("wide.mkv");
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMediaResult) result = ks_media_load (path, NULL, NULL, &error);

  g_assert_no_error (error);
  g_assert_cmpuint (result->width_px, ==, 192);
  g_assert_cmpuint (result->height_px, ==, 64);
  g_assert_true (is_red (result->pixels, 56, 8));
  g_assert_false (is_red (result->pixels, 72, 8));
}

/* One frame is the first, the middle and the last. */
static void
test_one_frame (void)
{
  KsMediaSampling wish = {.mode = KS_MEDIA_SAMPLE_COUNT, .n_frames = 8};

  for (KsMediaSamplingMode mode = KS_MEDIA_SAMPLE_COUNT; mode <= KS_MEDIA_SAMPLE_SCENES; mode++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (KsMediaResult) facts = NULL;
    g_autoptr (GPtrArray) frames = NULL;

    wish.mode = mode;
    frames = load ("one.mp4", &wish, &facts, &error);
    g_assert_no_error (error);
    g_assert_cmpuint (frames->len, ==, 1);
    g_assert_cmpuint (facts->n_frames, ==, 1);
    assert_frame (frames, 0, 0, 0);
  }
}

/* A cut is found where it is, twice in this film; what moves evenly has none. */
static void
test_scenes (void)
{
  KsMediaSampling wish = {.mode = KS_MEDIA_SAMPLE_SCENES, .n_frames = 20};
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) frames = load ("scenes.mp4", &wish, NULL, &error), one = NULL, part = NULL;
  g_autoptr (KsMediaResult) facts = NULL;

  g_assert_no_error (error);
  g_assert_cmpuint (frames->len, ==, 3);
  for (guint i = 0; i < 3; i++) {
    const KsMediaFrame *frame = g_ptr_array_index (frames, i);

    g_assert_cmpint (ABS (frame->time_us - i * G_USEC_PER_SEC), <=, 1000);
  }
  one = load ("moving.mp4", &wish, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (one->len, ==, 1);
  wish.n_frames = 2;
  wish.begin_us = 500000;
  part = load ("scenes.mp4", &wish, &facts, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (part->len, ==, 2);
  g_assert_nonnull (strstr (facts->warning, "limit"));
  g_assert_cmpint (((KsMediaFrame *)g_ptr_array_index (part, 0))->time_us, ==, 500000);
}

/* The first n bytes of a video, n in thousandths, as another file. */
static void
cut (const char *name, const char *to, guint permille)
{
  g_autofree char *from_path = dup_path (name), *to_path = dup_path (to), *data = NULL;
  gsize n;

  g_assert_true (g_file_get_contents (from_path, &data, &n, NULL));
  g_assert_true (g_file_set_contents (to_path, data, (gssize)(n * permille / 1000), NULL));
}

/* What is left of a cut file is shown, with its real times and a word about the end. */
static void
test_cut (void)
{
  static const char *const names[] = {"front.mp4", "pieces.mp4", "plain.mkv", "plain.avi",
                                      "late.ts"};
  KsMediaSampling wish = {.mode = KS_MEDIA_SAMPLE_COUNT, .n_frames = 64};

  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *name = g_strconcat ("cut-", names[i], NULL);
    g_autoptr (GError) error = NULL;
    g_autoptr (KsMediaResult) facts = NULL;
    g_autoptr (GPtrArray) frames = NULL;

    cut (names[i], name, 600);
    g_test_message ("%s", name);
    frames = load (name, &wish, &facts, &error);
    g_assert_no_error (error);
    g_assert_cmpuint (frames->len, >=, 5); /* the head of an AVI is large */
    g_assert_cmpuint (frames->len, <=, 24);
    for (guint k = 0; k + 1 < frames->len; k++)
      assert_frame (frames, k, (int)k, (gint64)k * 100);
    /* A stream and a row of pieces may end anywhere: they state no length. */
    if (!g_str_equal (names[i], "late.ts") && !g_str_equal (names[i], "pieces.mp4"))
      g_assert_cmpstr (facts->warning, ==, "the video ends early");
  }
}

static void
write_list (const char *name, const char *format)
{
  g_autofree char *path = dup_path (name), *video = dup_path ("plain.mp4");
  g_auto (GStrv) parts = g_strsplit (format, "%s", 2);
  g_autofree char *text = g_strconcat (parts[0], video, parts[1], NULL);

  g_assert_true (g_file_set_contents (path, text, -1, NULL));
}

/* A recording that was never finished says so, and what was no video is named as what it is. */
static void
test_refused (void)
{
  static const struct {
    const char *name;
    KsMediaError code;
    const char *part;
  } cases[] = {{"no-index.mp4", KS_MEDIA_ERROR_DAMAGED, "never finished"},
               {"head.mkv", KS_MEDIA_ERROR_DAMAGED, "as video"},
               {"sound.m4a", KS_MEDIA_ERROR_UNKNOWN_TYPE, "only sound"},
               {"sound.mka", KS_MEDIA_ERROR_UNKNOWN_TYPE, "only sound"},
               {"text.txt", KS_MEDIA_ERROR_UNKNOWN_TYPE, "not a video"},
               {"list.m3u8", KS_MEDIA_ERROR_UNKNOWN_TYPE, "not a video"},
               {"list.ffconcat", KS_MEDIA_ERROR_UNKNOWN_TYPE, "not a video"},
               {"empty.mp4", KS_MEDIA_ERROR_EMPTY, "empty"},
               {".", KS_MEDIA_ERROR_UNKNOWN_TYPE, "not a file"}};
  KsMediaSampling wish = {.mode = KS_MEDIA_SAMPLE_COUNT, .n_frames = 4};
  g_autofree char *text = dup_path ("text.txt"), *empty = dup_path ("empty.mp4");

  cut ("plain.mp4", "no-index.mp4", 500);
  cut ("plain.mkv", "head.mkv", 5);
  g_assert_true (g_file_set_contents (text, "words", 5, NULL));
  /* Lists name other files: FFmpeg would open those. */
  write_list ("list.m3u8", "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n%s\n");
  write_list ("list.ffconcat", "ffconcat version 1.0\nfile %s\n");
  g_assert_true (g_file_set_contents (empty, "", 0, NULL));
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GError) error = NULL;

    g_test_message ("%s", cases[i].name);
    g_assert_null (load (cases[i].name, &wish, NULL, &error));
    g_assert_error (error, KS_MEDIA_ERROR, (int)cases[i].code);
    g_assert_nonnull (strstr (error->message, cases[i].part));
  }
}

/* A video that changes its size on the way: each frame has its own, in its own shape, and the cap
 * is one for each of them, not for the first. */
static void
test_grows (void)
{
  static const struct {
    guint max_side_px;         /* 0 = no cap that matters */
    guint width[2], height[2]; /* before and after the change */
  } cases[] = {{0, {96, 288}, {64, 128}}, {144, {96, 144}, {64, 64}}, {48, {48, 48}, {32, 21}}};
  KsMediaSampling wish = {.mode = KS_MEDIA_SAMPLE_COUNT, .n_frames = 10};
  g_autofree char *path = dup_path ("grows.mkv");

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    KsMediaOptions options = {.max_side_px = cases[i].max_side_px};
    g_autoptr (GError) error = NULL;
    g_autoptr (KsMediaResult) facts = NULL;
    g_autoptr (GPtrArray) frames =
        ks_media_load_frames (path, &wish, &options, &facts, NULL, &error);

    g_assert_no_error (error);
    g_assert_cmpuint (frames->len, ==, 10);
    g_assert_cmpuint (facts->width_px, ==, 96);
    for (guint k = 0; k < 10; k++) {
      KsPixels *pixels = ((const KsMediaFrame *)g_ptr_array_index (frames, k))->pixels;

      g_assert_cmpuint (ks_pixels_get_width (pixels), ==, cases[i].width[k / 5]);
      g_assert_cmpuint (ks_pixels_get_height (pixels), ==, cases[i].height[k / 5]);
      assert_frame (frames, k, (int)k, 100 * k);
      g_assert_true (is_red (pixels, 2, 2));
    }
    assert_no_children ();
  }
}

/* 17 grey frames of 4096 x 4096 in a file that is mostly holes. */
static void
write_large (const char *path)
{
  static const char head[] = "YUV4MPEG2 W4096 H4096 F10:1 Cmono\n", frame[] = "FRAME\n";
  off_t at = sizeof head - 1;
  int fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

  g_assert_cmpint (pwrite (fd, head, sizeof head - 1, 0), ==, sizeof head - 1);
  for (guint i = 0; i < 17; i++, at += sizeof frame - 1 + 4096 * 4096)
    g_assert_cmpint (pwrite (fd, frame, sizeof frame - 1, at), ==, sizeof frame - 1);
  g_assert_cmpint (ftruncate (fd, at), ==, 0);
  close (fd);
}

/* Frames that together are too many bytes are refused before they are made; smaller ones are not.
 */
static void
test_too_many_bytes (void)
{
  g_autofree char *path = dup_path ("large.y4m");
  KsMediaSampling wish = {.mode = KS_MEDIA_SAMPLE_COUNT, .n_frames = 1024};
  KsMediaOptions options = {.max_side_px = 8192};
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) frames = NULL;

  write_large (path);
  g_assert_null (ks_media_load_frames (path, &wish, &options, NULL, NULL, &error));
  g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_TOO_LARGE);
  g_assert_nonnull (strstr (error->message, "1024 MiB"));
  g_clear_error (&error);
  options.max_side_px = 256;
  frames = ks_media_load_frames (path, &wish, &options, NULL, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (frames->len, ==, 17);
  assert_no_children ();
}

#ifndef __SANITIZE_ADDRESS__ /* see test_memory */
static gboolean
run_within (const char *name, guint mib, guint side_px, GError **error)
{
  g_autofree char *path = dup_path (name);
  KsWorkerLimits limits = ks_worker_default_limits;
  KsWorkerJob job = {.name = name,
                     .operation = KS_WIRE_FRAMES,
                     .max_side_px = side_px,
                     .sampling = {.mode = KS_MEDIA_SAMPLE_COUNT, .n_frames = 4},
                     .limits = &limits};
  KsWorkerResult got;
  gboolean ok;

  limits.memory_bytes = (guint64)mib << 20;
  job.fd = open (path, O_RDONLY | O_CLOEXEC);
  g_assert_cmpint (job.fd, >=, 0);
  ok = ks_worker_run (&job, NULL, &got, error);
  if (ok)
    ks_worker_result_clear (&got);
  close (job.fd);
  assert_no_children ();
  return ok;
}
#endif

/* A small video needs 256 MiB of address space at most, most of it the libraries; one that needs
 * more than it may is refused with the limit named. */
static void
test_memory (void)
{
#ifdef __SANITIZE_ADDRESS__
  g_test_skip ("AddressSanitizer reserves terabytes: the address space is not limited here");
#else
  static const char *const names[] = {"plain.mp4", "late.ts",  "h264.mp4",
                                      "h265.mp4",  "vp9.webm", "av1.mp4"};
  g_autofree char *path = dup_path ("large.y4m");
  g_autoptr (GError) error = NULL;

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (exists (names[i])) {
      run_within (names[i], 256, 256, &error);
      g_assert_no_error (error);
    }
  write_large (path);
  g_assert_false (run_within ("large.y4m", 256, 8192, &error));
  g_assert_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_TOO_LARGE);
  g_assert_nonnull (strstr (error->message, "256 MiB"));
  g_clear_error (&error);
  g_assert_true (run_within ("large.y4m", 768, 8192, &error));
#endif
}

static guint32
next_random (guint32 *state)
{
  *state ^= *state << 13;
  *state ^= *state >> 17;
  return *state ^= *state << 5;
}

/* Copies with wrong bytes: frames or an error with a sentence, in time, and no process is left. */
static void
test_broken (void)
{
  static const char *const names[] = {"front.mp4", "sound.mp4", "plain.mkv", "plain.avi",
                                      "late.ts",   "plain.mpg", "plain.flv", "plain.mov"};
  KsMediaSampling wish = {.mode = KS_MEDIA_SAMPLE_SCENES, .n_frames = 8};
  g_autofree char *path = dup_path ("broken.bin");
  guint32 state = 20261130;
  guint n_shown = 0;

  for (guint i = 0; i < G_N_ELEMENTS (names) * 6; i++) {
    g_autofree char *from = dup_path (names[i % G_N_ELEMENTS (names)]), *data = NULL;
    g_autoptr (GError) error = NULL;
    g_autoptr (GPtrArray) frames = NULL;
    gsize n;

    g_assert_true (g_file_get_contents (from, &data, &n, NULL));
    for (guint k = 0; k < 1u << (i / G_N_ELEMENTS (names)); k++)
      data[next_random (&state) % (k % 2 == 0 ? n : MIN (n, 2000))] = (char)next_random (&state);
    g_assert_true (g_file_set_contents (path, data, (gssize)n, NULL));
    frames = ks_media_load_frames (path, &wish, NULL, NULL, NULL, &error);
    g_assert_true ((frames != NULL) == (error == NULL));
    g_assert_true (error == NULL || strstr (error->message, "broken.bin") != NULL);
    n_shown += frames != NULL;
    assert_no_children ();
  }
  g_assert_cmpuint (n_shown, >, 10); /* one wrong byte rarely spoils all */
}

int
main (int argc, char **argv)
{
  int code;

  g_test_init (&argc, &argv, NULL);
  folder = make_folder ();
  make_videos ();
  g_test_add_func ("/video/containers", test_containers);
  g_test_add_func ("/video/clockless", test_clockless);
  g_test_add_func ("/video/load", test_load);
  g_test_add_func ("/video/uneven", test_uneven);
  g_test_add_func ("/video/turned", test_turned);
  g_test_add_func ("/video/aspect", test_aspect);
  g_test_add_func ("/video/one-frame", test_one_frame);
  g_test_add_func ("/video/scenes", test_scenes);
  g_test_add_func ("/video/cut", test_cut);
  g_test_add_func ("/video/refused", test_refused);
  g_test_add_func ("/video/grows", test_grows);
  g_test_add_func ("/video/too-many-bytes", test_too_many_bytes);
  g_test_add_func ("/video/memory", test_memory);
  g_test_add_func ("/video/broken", test_broken);
  code = g_test_run ();
  remove_tree (folder);
  g_free (folder);
  return code;
}
