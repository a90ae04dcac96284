/* ks-picture-trace.c - see ks-picture-trace.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-picture-trace.h"

G_DEFINE_BOXED_TYPE (KsPictureTrace, ks_picture_trace, ks_picture_trace_copy, ks_picture_trace_free)

KsPictureTrace *
ks_picture_trace_new (void)
{
  KsPictureTrace *trace = g_new0 (KsPictureTrace, 1);

  trace->width = trace->height = 1;
  trace->entries = g_array_new (FALSE, FALSE, sizeof (KsTraceEntry));
  trace->overview = g_array_new (FALSE, FALSE, sizeof (KsTraceEntry));
  return trace;
}

KsPictureTrace *
ks_picture_trace_copy (const KsPictureTrace *trace)
{
  KsPictureTrace *copy;

  g_return_val_if_fail (trace != NULL, NULL);
  copy = g_memdup2 (trace, sizeof *trace);
  copy->entries = g_array_copy (trace->entries);
  copy->overview = g_array_copy (trace->overview);
  return copy;
}

void
ks_picture_trace_free (KsPictureTrace *trace)
{
  if (trace == NULL)
    return;
  g_array_unref (trace->entries);
  g_array_unref (trace->overview);
  g_free (trace);
}
