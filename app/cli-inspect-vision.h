/* cli-inspect-vision.h - one run of keepsake-cli inspect vision, for the files that make it and
 * print it.  Threads: main, then engine, never both at once. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/cli-options.h"
#include "app/ks-engine.h"
#include "app/ks-picture-trace.h"
#include "engine/vision.h"

#include <cjson/cJSON.h>

G_BEGIN_DECLS

/* Over the elements of an array. */
typedef struct {
  guint64 n;
  double sum, sum_of_squares;
  float min, max;
} CliVisionSums;

typedef struct {
  const CliOptions *options;
  const char *mmproj, *dump_path;
  const char *model, *prompt; /* for FastV; model NULL = none */
  char **images;
  ks_vision_limits limits;
  ks_vision_zip zip; /* zeros = all tokens */
  ks_fastv fastv;    /* layer 0 = off */
  guint n_thread;
  ks_compute_mode mode;
  gboolean pixels_only;
  /* the pictures */
  GPtrArray *bytes; /* of frames */
  ks_rgb frames[2];
  guint n_frame;
  /* the run */
  KsEngineJob *job;
  ks_alloc *alloc;
  ks_backend be;
  ks_vision_prep prep;
  ks_vision_plan plan;
  ks_vision_input *in;
  ks_vision *vision; /* NULL with pixels_only */
  ks_vision_embeds embeds;
  GArray *tower; /* float: [n_view, patch, n_tower_col] */
  guint n_tower_col;
  GArray *positions;     /* gint32 */
  KsPictureTrace *trace; /* of FastV; NULL = it did not run */
  guint64 scratch_bytes;
  double load_s, prepare_s, encode_s;
  CliVisionSums pixels, tower_sums, projector, deepstack;
  struct _CliDump *dump;
  cJSON *arrays; /* what was dumped, or NULL */
} CliVision;

/* Result as text or JSON; arrays: what was dumped, or NULL. */
void cli_vision_print (const CliVision *run, cJSON *take_arrays);

/* cli-inspect-kept.c: which tokens VisionZip and FastV keep.  The model reads the picture with the
 * prompt; main thread. */
gboolean cli_vision_run_fastv (CliVision *run, GError **error);
void cli_vision_add_kept (cJSON *json, const CliVision *run);
void cli_vision_print_kept (const CliVision *run);

G_END_DECLS
