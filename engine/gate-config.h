/* gate-config.h - the few facts of a gate's .config.json that decide whether it fits a model.
 * A bounded scanner for that one file: keys at the top level and inside "text_config", scalar
 * values only; everything else is skipped.  Source: docs/formats/gate.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/status.h"

KS_BEGIN_DECLS

/* Empty strings and zeros where the file says nothing. */
typedef struct ks_gate_config {
  char base_model[128];
  char kind[32]; /* "rg10": tied, three layers; "rg": local, two layers */
  char act[32];
  uint32_t n_gate, n_embd, n_layer, n_kv_head;
} ks_gate_config;

/* KS_ERR_FORMAT for text that is no JSON object, is nested deeper than 32 or ends early. */
KS_CHECK ks_status ks_gate_config_parse(const char *text, size_t n_bytes, ks_gate_config *out,
                                        ks_error *err);

KS_END_DECLS
