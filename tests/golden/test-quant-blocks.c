/* test-quant-blocks.c - every block type comes out of the reference blocks bit for bit.
 * A case is any folder whose expected.json lists "types". */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/quant.h"
#include "tests/golden/golden-case.h"
#include "tests/ks-test.h"

/* The rows of one type: no element may differ in a single bit from the reference. */
static void
check_type(const golden_case *c, const char *type)
{
  const cJSON *ids = cJSON_GetObjectItemCaseSensitive(golden_case_get_json(c), "ggml_type_ids");
  const cJSON *id = cJSON_GetObjectItemCaseSensitive(ids, type);
  const golden_array *raw, *want;
  char name[64];
  ks_dtype dtype;
  size_t row_bytes;
  double worst;
  float *got;

  snprintf(name, sizeof name, "%s.raw", type);
  raw = golden_case_find(c, name);
  snprintf(name, sizeof name, "%s.f32", type);
  want = golden_case_find(c, name);
  KS_ASSERT(raw != NULL && want != NULL);
  KS_ASSERT(ks_dtype_parse(type, &dtype));
  KS_ASSERT(cJSON_IsNumber(id));
  KS_ASSERT_EQ((int)id->valuedouble, dtype);
  KS_ASSERT(ks_dtype_row_bytes(dtype, want->shape[1], &row_bytes));
  KS_ASSERT_EQ(row_bytes, raw->shape[1]);
  got = malloc(want->n_elem * sizeof(*got));
  KS_ASSERT(got != NULL);
  for (size_t row = 0; row < want->shape[0]; row++)
    ks_dequantise_row(dtype, (const uint8_t *)raw->data + row * row_bytes,
                      got + row * want->shape[1], want->shape[1]);
  KS_ASSERT_EQ(want->tol_abs * 1e9, 0);
  KS_ASSERT_EQ(golden_array_compare(want, got, 1, &worst), 0);
  free(got);
}

KS_TEST(quant_blocks, bit_exact)
{
  golden_list list = golden_list_new("KS_GOLDEN_DIR", "KS_GOLDEN_DEFAULT");
  size_t n_types = 0;

  KS_ASSERT(list.n > 0);
  for (size_t i = 0; i < list.n; i++) {
    char error[512];
    golden_case *c = golden_case_load(list.folders[i], error, sizeof error);
    const cJSON *type;

    if (c == NULL)
      KS_FAIL("%s", error);
    cJSON_ArrayForEach(type, cJSON_GetObjectItemCaseSensitive(golden_case_get_json(c), "types"))
    {
      check_type(c, type->valuestring);
      n_types++;
    }
    golden_case_free(c);
  }
  golden_list_free(&list);
  if (n_types == 0)
    KS_SKIP("the folder has cases, but none of quantised blocks");
}

KS_TEST_MAIN
