/* golden-case.c - reading of reference cases; see golden-case.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/golden/golden-case.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct golden_case {
  char *folder;
  char *text; /* expected.json */
  cJSON *json;
  unsigned char *bin; /* expected.bin, aligned to 64 */
  size_t n_bin;
  golden_array *arrays;
  size_t n_arrays;
};

static char *
join_path(const char *folder, const char *file)
{
  size_t n = strlen(folder) + strlen(file) + 2;
  char *path = malloc(n);

  if (path != NULL)
    snprintf(path, n, "%s/%s", folder, file);
  return path;
}

static bool
has_file(const char *folder, const char *file)
{
  char *path = join_path(folder, file);
  struct stat st;
  bool found = path != NULL && stat(path, &st) == 0 && S_ISREG(st.st_mode);

  free(path);
  return found;
}

/* Whole file, aligned to 64, with a NUL after it. */
static unsigned char *
read_whole(const char *folder, const char *file, size_t *out_n)
{
  char *path = join_path(folder, file);
  FILE *f = path != NULL ? fopen(path, "rb") : NULL;
  unsigned char *data = NULL;
  long n;

  free(path);
  if (f == NULL)
    return NULL;
  if (fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0) {
    data = aligned_alloc(64, ((size_t)n / 64 + 1) * 64);
    if (data != NULL && fread(data, 1, (size_t)n, f) == (size_t)n) {
      data[n] = '\0';
      *out_n = (size_t)n;
    } else {
      free(data);
      data = NULL;
    }
  }
  fclose(f);
  return data;
}

static int
compare_strings(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
list_add(golden_list *list, char *folder)
{
  char **grown;

  if (folder == NULL || !has_file(folder, "expected.json")) {
    free(folder);
    return;
  }
  grown = realloc(list->folders, (list->n + 1) * sizeof(*grown));
  if (grown == NULL) {
    free(folder);
    return;
  }
  list->folders = grown;
  list->folders[list->n++] = folder;
}

golden_list
golden_list_new(const char *env, const char *default_env)
{
  golden_list list = {NULL, 0};
  const char *root = getenv(env);
  struct dirent *entry;
  DIR *dir;

  if (root == NULL || root[0] == '\0')
    root = getenv(default_env);
  dir = root != NULL ? opendir(root) : NULL;
  if (dir == NULL)
    return list;
  list_add(&list, strdup(root));
  while ((entry = readdir(dir)) != NULL)
    if (entry->d_name[0] != '.')
      list_add(&list, join_path(root, entry->d_name));
  closedir(dir);
  if (list.n > 0)
    qsort(list.folders, list.n, sizeof(*list.folders), compare_strings);
  return list;
}

void
golden_list_free(golden_list *list)
{
  for (size_t i = 0; i < list->n; i++)
    free(list->folders[i]);
  free(list->folders);
  *list = (golden_list){NULL, 0};
}

static double
number_or(const cJSON *object, const char *key, double fallback)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

  return cJSON_IsNumber(item) ? item->valuedouble : fallback;
}

static bool
parse_dtype(const cJSON *object, golden_array *array, size_t *out_elem_bytes)
{
  const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "dtype"));

  if (name == NULL)
    return false;
  *out_elem_bytes = 4;
  if (strcmp(name, "f32") == 0) {
    array->dtype = GOLDEN_F32;
  } else if (strcmp(name, "i32") == 0) {
    array->dtype = GOLDEN_I32;
  } else if (strcmp(name, "u8") == 0) {
    array->dtype = GOLDEN_U8;
    *out_elem_bytes = 1;
  } else {
    return false;
  }
  return true;
}

static bool
parse_array(const golden_case *c, const cJSON *object, golden_array *array)
{
  const cJSON *shape = cJSON_GetObjectItemCaseSensitive(object, "shape"), *dim;
  double offset = number_or(object, "offset", -1), n_bytes = number_or(object, "nbytes", -1);
  double n_elem = 1;
  size_t elem_bytes;

  array->name = object->string;
  if (!parse_dtype(object, array, &elem_bytes) || !cJSON_IsArray(shape) ||
      cJSON_GetArraySize(shape) > 4)
    return false;
  for (int i = 0; i < 4; i++)
    array->shape[i] = 1;
  cJSON_ArrayForEach(dim, shape)
  {
    if (!cJSON_IsNumber(dim) || dim->valuedouble < 0 || dim->valuedouble > 1e9)
      return false;
    array->shape[array->n_dims++] = (size_t)dim->valuedouble;
    n_elem *= dim->valuedouble;
  }
  if (offset < 0 || n_bytes != n_elem * (double)elem_bytes || offset + n_bytes > (double)c->n_bin)
    return false;
  array->n_elem = (size_t)n_elem;
  array->data = c->bin + (size_t)offset;
  array->tol_abs = number_or(object, "tol_abs", -1);
  array->tol_rel = number_or(object, "tol_rel", -1);
  array->tol_int8_rms = number_or(object, "tol_int8_rms", -1);
  return true;
}

static bool
parse_arrays(golden_case *c, char *error, size_t n_error)
{
  const cJSON *objects = cJSON_GetObjectItemCaseSensitive(c->json, "arrays"), *object;

  if (!cJSON_IsObject(objects)) {
    snprintf(error, n_error, "%s: expected.json has no arrays", c->folder);
    return false;
  }
  c->arrays = calloc((size_t)cJSON_GetArraySize(objects) + 1, sizeof(*c->arrays));
  if (c->arrays == NULL) {
    snprintf(error, n_error, "%s: no memory", c->folder);
    return false;
  }
  cJSON_ArrayForEach(object, objects)
  {
    if (!parse_array(c, object, &c->arrays[c->n_arrays])) {
      snprintf(error, n_error, "%s: array %s does not fit expected.bin", c->folder, object->string);
      return false;
    }
    c->n_arrays++;
  }
  return true;
}

golden_case *
golden_case_load(const char *folder, char *error, size_t n_error)
{
  golden_case *c = calloc(1, sizeof(*c));
  size_t n_text;

  snprintf(error, n_error, "%s: cannot read expected.json and expected.bin", folder);
  if (c == NULL)
    return NULL;
  c->folder = strdup(folder);
  c->text = (char *)read_whole(folder, "expected.json", &n_text);
  c->bin = read_whole(folder, "expected.bin", &c->n_bin);
  if (c->folder == NULL || c->text == NULL || c->bin == NULL)
    goto fail;
  c->json = cJSON_ParseWithLength(c->text, n_text);
  if (c->json == NULL) {
    snprintf(error, n_error, "%s: expected.json is not JSON", folder);
    goto fail;
  }
  if (!parse_arrays(c, error, n_error))
    goto fail;
  error[0] = '\0';
  return c;
fail:
  golden_case_free(c);
  return NULL;
}

void
golden_case_free(golden_case *c)
{
  if (c == NULL)
    return;
  cJSON_Delete(c->json);
  free(c->arrays);
  free(c->bin);
  free(c->text);
  free(c->folder);
  free(c);
}

const char *
golden_case_get_folder(const golden_case *c)
{
  return c->folder;
}

const char *
golden_case_get_name(const golden_case *c)
{
  const char *slash = strrchr(c->folder, '/');

  return slash != NULL ? slash + 1 : c->folder;
}

const cJSON *
golden_case_get_json(const golden_case *c)
{
  return c->json;
}

char *
golden_case_dup_path(const golden_case *c, const char *file)
{
  return join_path(c->folder, file);
}

bool
golden_case_has_file(const golden_case *c, const char *file)
{
  return has_file(c->folder, file);
}

size_t
golden_case_get_n_arrays(const golden_case *c)
{
  return c->n_arrays;
}

const golden_array *
golden_case_get_array(const golden_case *c, size_t i)
{
  return i < c->n_arrays ? &c->arrays[i] : NULL;
}

const golden_array *
golden_case_find(const golden_case *c, const char *name)
{
  for (size_t i = 0; i < c->n_arrays; i++)
    if (strcmp(c->arrays[i].name, name) == 0)
      return &c->arrays[i];
  return NULL;
}

static const void *
get_typed(const golden_case *c, const char *name, golden_dtype dtype, size_t *out_n_elem)
{
  const golden_array *array = golden_case_find(c, name);

  if (array == NULL || array->dtype != dtype)
    return NULL;
  if (out_n_elem != NULL)
    *out_n_elem = array->n_elem;
  return array->data;
}

const float *
golden_case_get_f32(const golden_case *c, const char *name, size_t *out_n_elem)
{
  return get_typed(c, name, GOLDEN_F32, out_n_elem);
}

const int32_t *
golden_case_get_i32(const golden_case *c, const char *name, size_t *out_n_elem)
{
  return get_typed(c, name, GOLDEN_I32, out_n_elem);
}

const uint8_t *
golden_case_get_u8(const golden_case *c, const char *name, size_t *out_n_elem)
{
  return get_typed(c, name, GOLDEN_U8, out_n_elem);
}

size_t
golden_array_compare(const golden_array *want, const float *got, double factor, double *out_worst)
{
  const float *values = want->data;
  double worst = 0;
  size_t n_wrong = 0;

  for (size_t i = 0; i < want->n_elem; i++) {
    double diff = fabs((double)got[i] - (double)values[i]);
    double tol = want->tol_abs;

    if (want->tol_rel >= 0)
      tol = fmax(tol, want->tol_rel * fabs((double)values[i]));
    if (tol <= 0)
      n_wrong += memcmp(&got[i], &values[i], sizeof(*got)) != 0;
    else
      n_wrong += !(diff <= tol * factor);
    if (!(diff <= worst))
      worst = diff;
  }
  if (out_worst != NULL)
    *out_worst = worst;
  return n_wrong;
}
