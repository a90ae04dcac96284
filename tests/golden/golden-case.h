/* golden-case.h - loads one folder of reference numbers: expected.json and expected.bin.
 * The format is described in cases/README.md.  Everything is checked against the files' sizes, so a
 * damaged case is an error text, not a crash.
 * Threads: read-only after loading. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum golden_dtype { GOLDEN_F32, GOLDEN_I32, GOLDEN_U8 } golden_dtype;

typedef struct golden_array {
  const char *name;
  golden_dtype dtype;
  uint32_t n_dims;
  size_t shape[4]; /* slowest first; unused ones are 1 */
  size_t n_elem;
  const void *data;                      /* aligned to 64, C order */
  double tol_abs, tol_rel, tol_int8_rms; /* -1 where the case gives none */
} golden_array;

typedef struct golden_case golden_case;

/* Folders with a case, sorted by path. */
typedef struct golden_list {
  char **folders;
  size_t n;
} golden_list;

/* Lists the folder named by the environment variable env, or when that is unset or empty the one
 * named by default_env: it and its subfolders, wherever an expected.json lies.  n is 0 when there
 * is none; the caller must treat that as a failure. */
golden_list golden_list_new(const char *env, const char *default_env);
void golden_list_free(golden_list *list);

/* NULL on failure; then error (n_error bytes) says why. */
golden_case *golden_case_load(const char *folder, char *error, size_t n_error);
void golden_case_free(golden_case *c); /* NULL is allowed */

const char *golden_case_get_folder(const golden_case *c);
const char *golden_case_get_name(const golden_case *c); /* last part of the folder's path */
const cJSON *golden_case_get_json(const golden_case *c);
/* Path of a file named relative to the folder ("model.gguf"); the caller frees it. */
char *golden_case_dup_path(const golden_case *c, const char *file);
bool golden_case_has_file(const golden_case *c, const char *file);

size_t golden_case_get_n_arrays(const golden_case *c);
const golden_array *golden_case_get_array(const golden_case *c, size_t i);
const golden_array *golden_case_find(const golden_case *c, const char *name); /* or NULL */
/* Data of the array of that name and type, or NULL; out_n_elem may be NULL. */
const float *golden_case_get_f32(const golden_case *c, const char *name, size_t *out_n_elem);
const int32_t *golden_case_get_i32(const golden_case *c, const char *name, size_t *out_n_elem);
const uint8_t *golden_case_get_u8(const golden_case *c, const char *name, size_t *out_n_elem);

/* Number of elements of got that differ from want by more than the array's tolerance (tol_abs, or
 * tol_rel of the wanted value; 0 means bit for bit), times factor; *out_worst (may be NULL) gets
 * the largest absolute difference.  A NaN counts as wrong.  want must be f32. */
size_t golden_array_compare(const golden_array *want, const float *got, double factor,
                            double *out_worst);
