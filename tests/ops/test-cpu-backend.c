/* test-cpu-backend.c - the CPU device: memory it counts, ranges it gives back, steps it runs.
 * The numbers of the operations are tested in tests/ops; here it is their order, what a step
 * allocates, and how it stops.  Also the registry and modules that cannot be used. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-backend-internal.h"
#include "tests/ks-test.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNIT ((size_t)64 << 10)

static ks_backend
open_cpu(ks_alloc *a, uint32_t n_thread)
{
  ks_dev_params params = {.alloc = a, .n_thread = n_thread};
  ks_backend be = {0};

  KS_ASSERT_OK(ks_backend_open("cpu", &params, &be, NULL));
  return be;
}

static ks_dptr
new_floats(const ks_backend *be, size_t n, float first, float step)
{
  ks_dptr p = 0;

  KS_ASSERT_OK(be->t->mem_new(be->dev, KS_MEM_SCRATCH, n * sizeof(float), &p, NULL));
  for (size_t i = 0; i < n; i++) {
    float v = first + step * (float)i;

    KS_ASSERT_OK(be->t->upload(be->dev, p + 4 * i, &v, sizeof(v), NULL));
  }
  return p;
}

static float
read_float(const ks_backend *be, ks_dptr p, size_t i)
{
  float v = -1;

  KS_ASSERT_OK(be->t->download(be->dev, &v, p + 4 * i, sizeof(v), NULL));
  return v;
}

KS_TEST(cpu_backend, counts_memory_and_weights)
{
  ks_alloc *a = ks_alloc_new();
  ks_backend be = open_cpu(a, 1);
  static const float weights[256] = {3};
  ks_dptr p, w;

  KS_ASSERT_OK(be.t->mem_new(be.dev, KS_MEM_VISION, 1000, &p, NULL));
  KS_ASSERT_GE(ks_alloc_get_bytes(a, KS_MEM_VISION), 1000);
  be.t->mem_free(be.dev, p);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_VISION), 0);
  KS_ASSERT_OK(be.t->weight_bind(be.dev, weights, sizeof(weights), &w, NULL));
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_WEIGHTS), sizeof(weights));
  KS_ASSERT(read_float(&be, w, 0) == 3);
  be.t->weight_unbind(be.dev, w, sizeof(weights));
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_WEIGHTS), 0);
  ks_backend_close(&be);
  ks_alloc_free(a);
}

static size_t
count_resident(ks_dptr base, size_t n_bytes)
{
  unsigned char pages[256];
  size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 0;

  KS_ASSERT_LE(n_bytes / page, sizeof(pages));
  KS_ASSERT_EQ(mincore((void *)(uintptr_t)base, n_bytes, pages), 0);
  for (size_t i = 0; i < n_bytes / page; i++)
    n += pages[i] & 1;
  return n * page;
}

/* What is committed is counted and zero; what is dropped leaves the memory of the process. */
KS_TEST(cpu_backend, ranges_give_memory_back)
{
  ks_alloc *a = ks_alloc_new();
  ks_backend be = open_cpu(a, 1);
  unsigned char *bytes;
  ks_dptr range;
  ks_error err;

  KS_ASSERT_OK(be.t->range_new(be.dev, 1024 * UNIT, &range, NULL));
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_KV), 0);
  KS_ASSERT_OK(be.t->range_commit(be.dev, range, 3 * UNIT, 4 * UNIT, NULL));
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_KV), 4 * UNIT);
  bytes = (unsigned char *)(uintptr_t)(range + 3 * UNIT);
  KS_ASSERT_EQ(bytes[4 * UNIT - 1], 0);
  memset(bytes, 1, 4 * UNIT);
  KS_ASSERT_EQ(count_resident(range + 3 * UNIT, 4 * UNIT), 4 * UNIT);
  be.t->range_drop(be.dev, range, 4 * UNIT, 2 * UNIT);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_KV), 2 * UNIT);
  KS_ASSERT_EQ(count_resident(range + 3 * UNIT, 4 * UNIT), 2 * UNIT);
  KS_ASSERT_OK(be.t->range_commit(be.dev, range, 4 * UNIT, UNIT, NULL));
  KS_ASSERT_EQ(bytes[UNIT], 0); /* what was there is gone */
  KS_ASSERT_EQ(bytes[0], 1);
  ks_alloc_fail_after(a, 0);
  KS_ASSERT_STATUS(KS_ERR_NOMEM, be.t->range_commit(be.dev, range, 0, UNIT, &err));
  ks_alloc_fail_after(a, -1);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_KV), 3 * UNIT);
  be.t->range_free(be.dev, range, 1024 * UNIT);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_KV), 0);
  ks_backend_close(&be);
  ks_alloc_free(a);
}

/* True when the mapping that holds p asked for huge pages ("hg" among its flags). */
static bool
asked_for_huge_pages(ks_dptr p)
{
  FILE *f = fopen("/proc/self/smaps", "r");
  char line[512];
  bool inside = false, found = false;

  KS_ASSERT(f != NULL);
  while (fgets(line, sizeof(line), f) != NULL) {
    unsigned long long begin, end;

    if (sscanf(line, "%llx-%llx ", &begin, &end) == 2)
      inside = p >= begin && p < end;
    else if (inside && strncmp(line, "VmFlags:", 8) == 0)
      found = strstr(line, " hg") != NULL;
  }
  fclose(f);
  return found;
}

/* Keys and values lie in huge pages where a commit covers one whole, and nowhere else: a first
 * touch never brings more than was committed. */
KS_TEST(cpu_backend, ranges_in_huge_pages)
{
  const size_t huge = 32 * UNIT;
  ks_alloc *a = ks_alloc_new();
  ks_backend be = open_cpu(a, 1);
  ks_dptr range;
  bool system_has_them = access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) == 0;

  KS_ASSERT_OK(be.t->range_new(be.dev, 5 * huge, &range, NULL));
  KS_ASSERT_EQ(range % huge, 0);
  KS_ASSERT_OK(be.t->range_commit(be.dev, range, 0, 2 * huge, NULL));
  KS_ASSERT_OK(be.t->range_commit(be.dev, range, 2 * huge, huge - UNIT, NULL));
  KS_ASSERT_EQ(asked_for_huge_pages(range), system_has_them);
  KS_ASSERT_EQ(asked_for_huge_pages(range + 2 * huge - 1), system_has_them);
  KS_ASSERT(!asked_for_huge_pages(range + 2 * huge));
  memset((char *)(uintptr_t)range, 1, 1);
  memset((char *)(uintptr_t)range + 2 * huge, 1, 1);
  KS_ASSERT_LE(count_resident(range + 2 * huge, 4 * UNIT), (size_t)sysconf(_SC_PAGESIZE));
  be.t->range_drop(be.dev, range, huge, 2 * huge - UNIT);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_KV), huge);
  KS_ASSERT_EQ(((char *)(uintptr_t)range)[0], 1);
  be.t->range_free(be.dev, range, 5 * huge);
  ks_backend_close(&be);
  ks_alloc_free(a);
}

/* y = 2 y, recorded n times, each reading what the one before wrote. */
static void
record_doublings(const ks_backend *be, ks_dptr y, uint32_t n)
{
  KS_ASSERT_OK(be->t->step_begin(be->dev, NULL));
  for (uint32_t i = 0; i < n; i++) {
    ks_op_add_rows op = {.dst = y, .src = y, .n_row = 1, .n_col = 64};

    KS_ASSERT_OK(be->t->add_rows(be->dev, &op));
  }
}

KS_TEST(cpu_backend, runs_operations_in_order)
{
  for (uint32_t n_thread = 1; n_thread <= 3; n_thread++) {
    ks_alloc *a = ks_alloc_new();
    ks_backend be = open_cpu(a, n_thread);
    ks_dptr y = new_floats(&be, 64, 1, 0);

    record_doublings(&be, y, 100);
    KS_ASSERT(read_float(&be, y, 63) == 1); /* recorded is not run */
    KS_ASSERT_OK(be.t->step_end(be.dev, NULL, NULL, NULL));
    for (size_t i = 0; i < 64; i++)
      KS_ASSERT(read_float(&be, y, i) == ldexpf(1, 100));
    record_doublings(&be, y, 3);
    be.t->step_abort(be.dev);
    KS_ASSERT(read_float(&be, y, 0) == ldexpf(1, 100));
    be.t->mem_free(be.dev, y);
    ks_backend_close(&be);
    ks_alloc_free(a);
  }
}

/* The tickets of linear begin at 0 for every operation, also when several follow each other. */
KS_TEST(cpu_backend, linear_after_linear)
{
  ks_alloc *a = ks_alloc_new();
  ks_backend be = open_cpu(a, 2);
  ks_dptr w = new_floats(&be, 96 * 96, 0, 0), x = new_floats(&be, 2 * 96, 1, 1);
  float one = 1;

  for (size_t i = 0; i < 96; i++) /* rows of the matrix: each takes the element before */
    KS_ASSERT_OK(be.t->upload(be.dev, w + 4 * (96 * i + (i + 95) % 96), &one, 4, NULL));
  KS_ASSERT_OK(be.t->step_begin(be.dev, NULL));
  for (uint32_t i = 0; i < 95; i++) { /* to and fro between the two halves of x */
    ks_op_linear op = {.n_w = 1, .n_tok = 1};

    op.w[0] =
        (ks_weight){.data = w, .dtype = KS_DTYPE_F32, .n_in = 96, .n_out = 96, .row_bytes = 96 * 4};
    op.x = x + (i % 2 != 0 ? 96 * 4 : 0);
    op.y[0] = x + (i % 2 != 0 ? 0 : 96 * 4);
    KS_ASSERT_OK(be.t->linear(be.dev, &op));
  }
  KS_ASSERT_OK(be.t->step_end(be.dev, NULL, NULL, NULL));
  for (size_t i = 0; i < 96; i++) /* 95 turns of 96: one turn back */
    KS_ASSERT(read_float(&be, x, 96 + i) == 1 + (float)((i + 1) % 96));
  be.t->mem_free(be.dev, w);
  be.t->mem_free(be.dev, x);
  ks_backend_close(&be);
  ks_alloc_free(a);
}

/* A row of w as the product with a unit vector shows it, element e. */
static float
product_with_unit(const ks_backend *be, const ks_weight *w, uint32_t e, ks_dptr x, ks_dptr y,
                  uint32_t row)
{
  ks_op_linear op = {.n_w = 1, .n_tok = 1, .w = {*w}, .x = x, .y = {y}};

  for (uint32_t i = 0; i < w->n_in; i++) {
    float v = i == e ? 1 : 0;

    KS_ASSERT_OK(be->t->upload(be->dev, x + 4 * i, &v, sizeof(v), NULL));
  }
  KS_ASSERT_OK(be->t->step_begin(be->dev, NULL));
  KS_ASSERT_OK(be->t->linear(be->dev, &op));
  KS_ASSERT_OK(be->t->step_end(be->dev, NULL, NULL, NULL));
  return read_float(be, y, row);
}

/* A repacked matrix multiplies as the one it was made from, in both modes and on several threads;
 * types that have no packed form say so. */
KS_TEST(cpu_backend, repacked_weights)
{
  static unsigned char bytes[37 * 3 * 18];
  ks_alloc *a = ks_alloc_new();

  for (uint32_t n_thread = 1; n_thread <= 3; n_thread++) {
    ks_dev_params params = {.alloc = a, .n_thread = n_thread};
    ks_weight w = {.dtype = KS_DTYPE_Q4_0, .n_in = 96, .n_out = 37, .row_bytes = 54}, packed;
    ks_weight plain = {.dtype = KS_DTYPE_F16, .n_in = 96, .n_out = 37, .row_bytes = 192};
    ks_backend be = {0};
    ks_dptr x, y, copy;
    size_t n_bytes;

    params.mode = n_thread == 2 ? KS_COMPUTE_EXACT : KS_COMPUTE_FAST;
    KS_ASSERT_OK(ks_backend_open("cpu", &params, &be, NULL));
    for (size_t i = 0; i < sizeof(bytes); i++)
      bytes[i] = i % 18 == 0 ? 0 : i % 18 == 1 ? 0x3c : (unsigned char)(i * 37 >> 2); /* d = 1 */
    KS_ASSERT_OK(be.t->weight_bind(be.dev, bytes, sizeof(bytes), &w.data, NULL));
    KS_ASSERT_EQ(be.t->repack_bytes(be.dev, &plain), 0);
    n_bytes = be.t->repack_bytes(be.dev, &w);
    KS_ASSERT_GE(n_bytes, sizeof(bytes));
    KS_ASSERT_OK(be.t->mem_new(be.dev, KS_MEM_WEIGHTS, n_bytes, &copy, NULL));
    packed = w;
    be.t->weight_repack(be.dev, &packed, copy);
    KS_ASSERT(packed.packed == copy && packed.data == w.data);
    x = new_floats(&be, 96, 0, 0);
    y = new_floats(&be, 37, 0, 0);
    for (uint32_t row = 0; row < 37; row += 4)
      for (uint32_t e = row % 7; e < 96; e += 19) {
        float want = product_with_unit(&be, &w, e, x, y, row);

        KS_ASSERT_NEAR(product_with_unit(&be, &packed, e, x, y, row), want, 1e-5);
      }
    be.t->mem_free(be.dev, x);
    be.t->mem_free(be.dev, y);
    be.t->mem_free(be.dev, copy);
    be.t->weight_unbind(be.dev, w.data, sizeof(bytes));
    ks_backend_close(&be);
  }
  ks_alloc_free(a);
}

/* Operations of training stand in a step with the others: the product with a matrix that turns x by
 * one place, then with its transpose, is x again; added to itself it is twice x. */
KS_TEST(cpu_backend, transposed_after_linear)
{
  ks_alloc *a = ks_alloc_new();
  ks_backend be = open_cpu(a, 2);
  ks_dptr w = new_floats(&be, 96 * 96, 0, 0), x = new_floats(&be, 96, 1, 1);
  ks_dptr y = new_floats(&be, 96, 0, 0), dx = new_floats(&be, 96, 7, 0);
  ks_op_linear op = {.n_w = 1, .n_tok = 1, .x = x, .y = {y}};
  ks_op_linear_t back = {.n_tok = 1, .dy = y, .dx = dx};
  float one = 1;

  op.w[0] = back.w =
      (ks_weight){.data = w, .dtype = KS_DTYPE_F32, .n_in = 96, .n_out = 96, .row_bytes = 96 * 4};
  for (size_t i = 0; i < 96; i++)
    KS_ASSERT_OK(be.t->upload(be.dev, w + 4 * (96 * i + (i + 95) % 96), &one, 4, NULL));
  KS_ASSERT(be.t->train != NULL);
  KS_ASSERT_OK(be.t->step_begin(be.dev, NULL));
  KS_ASSERT_OK(be.t->linear(be.dev, &op));
  KS_ASSERT_OK(be.t->train->linear_transposed(be.dev, &back));
  back.accumulate = true;
  KS_ASSERT_OK(be.t->train->linear_transposed(be.dev, &back));
  KS_ASSERT_OK(be.t->step_end(be.dev, NULL, NULL, NULL));
  for (size_t i = 0; i < 96; i++)
    KS_ASSERT(read_float(&be, dx, i) == 2 * read_float(&be, x, i));
  be.t->mem_free(be.dev, w);
  be.t->mem_free(be.dev, x);
  be.t->mem_free(be.dev, y);
  be.t->mem_free(be.dev, dx);
  ks_backend_close(&be);
  ks_alloc_free(a);
}

#define N_BUFFER 5u
#define N_ROW 6u
#define N_COL 32u
#define BUFFER_FLOATS (N_ROW * N_COL)

/* A record of small operations between buffers of N_ROW rows. */
typedef struct sketch {
  const ks_backend *be;
  ks_dptr buffers, weight; /* [N_BUFFER, N_ROW, N_COL] f32, [N_COL, N_COL] f32 */
} sketch;

static ks_dptr
buffer_at(const sketch *s, uint32_t i)
{
  return s->buffers + (ks_dptr)i * BUFFER_FLOATS * 4;
}

static void
record_norm(const sketch *s, uint32_t in, uint32_t out, uint32_t n_row)
{
  ks_op_norm op = {.x = buffer_at(s, in),
                   .out = buffer_at(s, out),
                   .n_row = n_row,
                   .n_col = BUFFER_FLOATS / n_row,
                   .eps = 0.5f};

  KS_ASSERT_OK(s->be->t->rms_norm(s->be->dev, &op));
}

static void
record_product(const sketch *s, uint32_t in, uint32_t out)
{
  ks_op_linear op = {.n_w = 1, .n_tok = N_ROW};

  op.w[0] = (ks_weight){.data = s->weight,
                        .dtype = KS_DTYPE_F32,
                        .n_in = N_COL,
                        .n_out = N_COL,
                        .row_bytes = N_COL * 4};
  op.x = buffer_at(s, in);
  op.y[0] = buffer_at(s, out);
  KS_ASSERT_OK(s->be->t->linear(s->be->dev, &op));
}

static void
record_sum(const sketch *s, uint32_t in, uint32_t out)
{
  ks_op_add_rows op = {
      .dst = buffer_at(s, out), .src = buffer_at(s, in), .n_row = N_ROW, .n_col = N_COL};

  KS_ASSERT_OK(s->be->t->add_rows(s->be->dev, &op));
}

static sketch
new_sketch(const ks_backend *be)
{
  sketch s = {.be = be,
              .buffers = new_floats(be, N_BUFFER * BUFFER_FLOATS, -1, 0.003f),
              .weight = new_floats(be, N_COL * N_COL, 0.05f, -0.0001f)};

  return s;
}

static uint32_t
run_and_count(const ks_backend *be)
{
  const ks_threads *threads = ks_cpu_get_ctx(be->dev)->threads;
  const uint32_t before = ks_threads_get_n_barriers(threads);

  KS_ASSERT_OK(be->t->step_end(be->dev, NULL, NULL, NULL));
  return ks_threads_get_n_barriers(threads) - before;
}

/* Members wait only where an operation needs what another one made, or overwrites what it read; the
 * end of a step is one barrier more. */
KS_TEST(cpu_backend, waits_only_where_it_must)
{
  ks_alloc *a = ks_alloc_new();
  ks_backend be = open_cpu(a, 2);
  const sketch s = new_sketch(&be);

  KS_ASSERT_OK(be.t->step_begin(be.dev, NULL));
  record_product(&s, 0, 1);
  record_product(&s, 0, 2); /* another output from the same input */
  record_norm(&s, 0, 3, N_ROW);
  record_norm(&s, 3, 3, N_ROW); /* each member reads the rows that it made */
  KS_ASSERT_EQ(run_and_count(&be), 1);
  KS_ASSERT_OK(be.t->step_begin(be.dev, NULL));
  record_norm(&s, 0, 1, N_ROW);
  record_norm(&s, 1, 2, 1); /* rows cut otherwise: | */
  record_product(&s, 2, 3); /* | */
  record_norm(&s, 0, 2, 1); /* overwrites the input: | */
  record_sum(&s, 0, 4);     /* alone: | */
  record_norm(&s, 0, 1, 1); /* | */
  KS_ASSERT_EQ(run_and_count(&be), 6);
  be.t->mem_free(be.dev, s.buffers);
  be.t->mem_free(be.dev, s.weight);
  ks_backend_close(&be);
  ks_alloc_free(a);
}

/* Random lists of operations give the same bits with one member, which never waits, and with
 * three. */
KS_TEST(cpu_backend, members_never_overtake_what_they_need)
{
  ks_alloc *a = ks_alloc_new();
  ks_backend be[2] = {open_cpu(a, 1), open_cpu(a, 3)};
  const sketch s[2] = {new_sketch(&be[0]), new_sketch(&be[1])};
  uint32_t x = 1;

  for (uint32_t round = 0; round < 60; round++) {
    for (uint32_t i = 0; i < 2; i++)
      KS_ASSERT_OK(be[i].t->step_begin(be[i].dev, NULL));
    for (uint32_t n = 0; n < 40; n++) {
      const uint32_t r = (x = x * 1664525u + 1013904223u) >> 8, in = r % N_BUFFER;
      const uint32_t out = r / 8 % N_BUFFER, kind = r / 64 % 8;

      for (uint32_t i = 0; i < 2; i++) {
        if (kind < 3)
          record_norm(&s[i], in, out, kind == 0 ? 1 : kind == 1 ? 2 : N_ROW);
        else if (kind < 7 && in != out)
          record_product(&s[i], in, out);
        else if (in != out)
          record_sum(&s[i], in, out);
      }
    }
    for (uint32_t i = 0; i < 2; i++) {
      record_norm(&s[i], round % N_BUFFER, 0, N_ROW); /* keeps the numbers small */
      KS_ASSERT_OK(be[i].t->step_end(be[i].dev, NULL, NULL, NULL));
    }
    KS_ASSERT(isfinite(read_float(&be[0], s[0].buffers, 7)));
    KS_ASSERT_EQ(memcmp(ks_cpu_ptr(s[0].buffers), ks_cpu_ptr(s[1].buffers),
                        N_BUFFER * BUFFER_FLOATS * sizeof(float)),
                 0);
  }
  for (uint32_t i = 0; i < 2; i++) {
    be[i].t->mem_free(be[i].dev, s[i].buffers);
    be[i].t->mem_free(be[i].dev, s[i].weight);
    ks_backend_close(&be[i]);
  }
  ks_alloc_free(a);
}

/* A step like the last one asks for no memory. */
KS_TEST(cpu_backend, warm_steps_allocate_nothing)
{
  ks_alloc *a = ks_alloc_new();
  ks_backend be = open_cpu(a, 2);
  ks_dptr y = new_floats(&be, 64, 0, 0);
  uint64_t n_calls = 0;

  for (int i = 0; i < 5; i++) {
    record_doublings(&be, y, 2000); /* several chunks of records */
    KS_ASSERT_OK(be.t->step_end(be.dev, NULL, NULL, NULL));
    if (i > 0)
      KS_ASSERT_EQ(ks_alloc_get_n_calls(a), n_calls);
    n_calls = ks_alloc_get_n_calls(a);
  }
  be.t->mem_free(be.dev, y);
  ks_backend_close(&be);
  ks_alloc_free(a);
}

typedef struct countdown {
  uint32_t left;
} countdown;

static bool
stop_after(void *user)
{
  countdown *c = user;

  return c->left-- == 0;
}

/* Asked between operations; the device is usable afterwards. */
KS_TEST(cpu_backend, stops_between_operations)
{
  ks_alloc *a = ks_alloc_new();

  for (uint32_t n_thread = 1; n_thread <= 3; n_thread++) {
    ks_backend be = open_cpu(a, n_thread);

    for (uint32_t n = 0; n < 40; n++) {
      ks_dptr y = new_floats(&be, 64, 1, 0);
      countdown c = {n};

      record_doublings(&be, y, 60);
      KS_ASSERT_STATUS(KS_ERR_CANCELLED, be.t->step_end(be.dev, stop_after, &c, NULL));
      KS_ASSERT(read_float(&be, y, 0) == ldexpf(1, (int)n));
      record_doublings(&be, y, 1);
      KS_ASSERT_OK(be.t->step_end(be.dev, NULL, NULL, NULL));
      KS_ASSERT(read_float(&be, y, 63) == ldexpf(1, (int)n + 1));
      be.t->mem_free(be.dev, y);
    }
    ks_backend_close(&be);
  }
  ks_alloc_free(a);
}

/* Recording without memory is a status; the step can be forgotten and the next one works. */
KS_TEST(cpu_backend, recording_survives_a_failing_allocator)
{
  ks_alloc *a = ks_alloc_new();
  ks_backend be = open_cpu(a, 1);
  ks_dptr y = new_floats(&be, 64, 1, 0);
  ks_op_add_rows op = {.dst = y, .src = y, .n_row = 1, .n_col = 64};

  KS_ASSERT_OK(be.t->step_begin(be.dev, NULL));
  ks_alloc_fail_after(a, 0);
  KS_ASSERT_STATUS(KS_ERR_NOMEM, be.t->add_rows(be.dev, &op));
  ks_alloc_fail_after(a, -1);
  be.t->step_abort(be.dev);
  record_doublings(&be, y, 1);
  KS_ASSERT_OK(be.t->step_end(be.dev, NULL, NULL, NULL));
  KS_ASSERT(read_float(&be, y, 5) == 2);
  be.t->mem_free(be.dev, y);
  ks_backend_close(&be);
  ks_alloc_free(a);
}

KS_TEST(cpu_backend, open_says_what_is_wrong)
{
  ks_alloc *a = ks_alloc_new();
  ks_dev_params isa = {.alloc = a, .n_thread = 1, .isa = "mmx"};
  ks_dev_params scalar = {.alloc = a, .n_thread = 1, .isa = "scalar"};
  ks_backend be = {0};
  ks_dev_info info;
  ks_error err;

  KS_ASSERT_STATUS(KS_ERR_ARG, ks_backend_open("cpu", &isa, &be, &err));
  KS_ASSERT(strstr(err.text, "mmx") != NULL);
  KS_ASSERT_STATUS(KS_ERR_UNSUPPORTED, ks_backend_open("abacus", &scalar, &be, &err));
  KS_ASSERT(strstr(err.text, "abacus") != NULL && strstr(err.text, "cpu") != NULL);
  KS_ASSERT(be.t == NULL);
  KS_ASSERT_OK(ks_backend_open("cpu", &scalar, &be, &err));
  be.t->get_info(be.dev, &info);
  KS_ASSERT_STR(info.isa, "scalar");
  KS_ASSERT_EQ(info.n_unit, 1);
  KS_ASSERT(info.total_bytes > 0 && info.name[0] != '\0');
  KS_ASSERT(be.t->supports_weight(be.dev, KS_DTYPE_IQ4_XS));
  KS_ASSERT(!be.t->supports_weight(be.dev, KS_DTYPE_I32));
  ks_backend_close(&be);
  ks_backend_close(&be);
  ks_alloc_free(a);
}

/* A file that is no library, and a name that is no module: the CPU is there, the reason is kept.
 * The registry reads the folder once per process; main sets it before any test. */
static char module_dir[] = "/tmp/ks-test-modules-XXXXXX";

static void
make_modules(void)
{
  static const char *const names[] = {"libkeepsake-broken.so", "other.so"};

  if (mkdtemp(module_dir) == NULL)
    return;
  for (size_t i = 0; i < 2; i++) {
    char path[128];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", module_dir, names[i]);
    f = fopen(path, "w");
    if (f != NULL) {
      fputs("not a library", f);
      fclose(f);
    }
  }
  setenv("KEEPSAKE_MODULE_DIR", module_dir, 1);
}

static void
remove_modules(void)
{
  char path[128];

  snprintf(path, sizeof(path), "%s/libkeepsake-broken.so", module_dir);
  unlink(path);
  snprintf(path, sizeof(path), "%s/other.so", module_dir);
  unlink(path);
  rmdir(module_dir);
}

KS_TEST(cpu_backend, registry_keeps_reasons)
{
  const ks_backend_table *tables[4] = {NULL};

  KS_ASSERT_EQ(ks_backend_list(tables, 4), 1);
  KS_ASSERT_STR(tables[0]->name, "cpu");
  KS_ASSERT(ks_backend_get_refusal(0) != NULL);
  KS_ASSERT(strstr(ks_backend_get_refusal(0), "libkeepsake-broken.so") != NULL);
  KS_ASSERT(ks_backend_get_refusal(1) == NULL);
}

int
main(int argc, char **argv)
{
  int rc;

  make_modules();
  rc = ks_test_run_all(argc, argv);
  remove_modules();
  return rc;
}
