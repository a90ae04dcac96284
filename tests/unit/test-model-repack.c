/* test-model-repack.c - the repacked copy of a model's weights: what is in it, what it costs, that
 * it goes again, and that the file's pages go with it.  The device is the CPU with a form of its
 * own in place of the real one: copies whose bytes are those of the file, so that every address and
 * size can be checked. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/model.h"
#include "tests/unit/tiny-model.h"

#include <unistd.h>

typedef struct fixture {
  ks_alloc *a;
  ks_backend be;
  ks_backend_table table;
  char path[32];
  ks_model *model;
} fixture;

/* F32 has no other form, as on the CPU. */
static size_t
fake_repack_bytes(ks_dev *dev, const ks_weight *w)
{
  (void)dev;
  return w->dtype == KS_DTYPE_F32 ? 0 : w->row_bytes * w->n_out;
}

static void
fake_weight_repack(ks_dev *dev, ks_weight *w, ks_dptr dst)
{
  (void)dev;
  memcpy((void *)(uintptr_t)dst, (const void *)(uintptr_t)w->data, w->row_bytes * w->n_out);
  w->packed = dst;
}

static void
open_fixture(fixture *f, const tiny_spec *spec, uint64_t room)
{
  ks_dev_params dev = {.n_thread = 1};
  ks_model_params params = {.be = &f->be, .repack_room = room};
  unsigned char *bytes;
  size_t n_bytes = 0;
  int fd;

  memset(f, 0, sizeof *f);
  f->a = ks_alloc_new();
  dev.alloc = f->a;
  KS_ASSERT_OK(ks_backend_open("cpu", &dev, &f->be, NULL));
  f->table = *f->be.t;
  f->table.repack_bytes = fake_repack_bytes;
  f->table.weight_repack = fake_weight_repack;
  f->be.t = &f->table;
  bytes = tiny_new_bytes(f->a, spec, &n_bytes);
  snprintf(f->path, sizeof f->path, "/tmp/ks-repack-XXXXXX");
  fd = mkstemp(f->path);
  KS_ASSERT(fd >= 0 && write(fd, bytes, n_bytes) == (ssize_t)n_bytes);
  close(fd);
  ks_mem_free(bytes);
  KS_ASSERT_OK(ks_model_open(f->a, f->path, &params, &f->model, NULL));
}

static void
close_fixture(fixture *f)
{
  ks_model_close(f->model);
  unlink(f->path);
  f->be.t = ks_cpu_backend_entry();
  ks_backend_close(&f->be);
  ks_alloc_free(f->a); /* asserts that nothing is left */
}

/* Number i of the matrices that products read, the output last. */
static const ks_weight *
get_matrix(const fixture *f, uint32_t i)
{
  const ks_layer *l;

  if (i == 7 * TINY_LAYER)
    return ks_model_get_output(f->model);
  l = ks_model_get_layer(f->model, i / 7);
  return (const ks_weight *[]){
      &l->wq, &l->wk, &l->wv, &l->wo, &l->w_gate, &l->w_up, &l->w_down}[i % 7];
}

static void
check_copied(const ks_weight *w)
{
  const size_t n_bytes = w->row_bytes * w->n_out;

  KS_ASSERT(w->packed != 0 && w->packed % 64 == 0);
  KS_ASSERT_EQ(
      memcmp((const void *)(uintptr_t)w->packed, (const void *)(uintptr_t)w->data, n_bytes), 0);
}

static size_t
whole_pages(const ks_weight *w)
{
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t begin = ((size_t)w->data + page - 1) / page;
  const size_t end = ((size_t)w->data + w->row_bytes * w->n_out) / page;

  return end > begin ? (end - begin) * page : 0;
}

/* Bytes of the file that this process has in memory, and the size of its mapping. */
static size_t
resident_bytes(const fixture *f, size_t *out_mapped)
{
  FILE *maps = fopen("/proc/self/smaps", "r");
  size_t kib, resident = 0;
  bool inside = false;
  char line[512];

  KS_ASSERT(maps != NULL);
  *out_mapped = 0;
  while (fgets(line, sizeof line, maps) != NULL) {
    if (strchr(line, '-') != NULL && strstr(line, "kB") == NULL)
      inside = strstr(line, f->path) != NULL;
    else if (inside && sscanf(line, "Size: %zu", &kib) == 1)
      *out_mapped += kib * 1024;
    else if (inside && sscanf(line, "Rss: %zu", &kib) == 1)
      resident += kib * 1024;
  }
  fclose(maps);
  return resident;
}

/* Everything fits: each matrix has its copy, the bytes count as weights, and closing or dropping
 * gives them back.  A tied output is copied once, and rows of the table come from that copy. */
KS_TEST(model_repack, whole_copy)
{
  tiny_spec spec = {.arch = "llama", .matrix_type = KS_DTYPE_Q8_0, .scale = 8};
  uint64_t plain, held;
  fixture f;

  open_fixture(&f, &spec, UINT64_MAX);
  KS_ASSERT_EQ(ks_model_get_repacked_bytes(f.model), ks_model_count_repack_bytes(f.model));
  for (uint32_t i = 0; i <= 7 * TINY_LAYER; i++)
    check_copied(get_matrix(&f, i));
  KS_ASSERT_EQ(ks_model_get_embd(f.model)->packed, ks_model_get_output(f.model)->packed);
  plain = ks_model_get_weight_bytes(f.model) - ks_model_get_repacked_bytes(f.model);
  held = ks_alloc_get_bytes(f.a, KS_MEM_WEIGHTS);
  ks_model_drop_repacked(f.model);
  KS_ASSERT_EQ(ks_model_get_weight_bytes(f.model), plain);
  KS_ASSERT_EQ(ks_model_get_repacked_bytes(f.model), 0);
  KS_ASSERT_LE(ks_alloc_get_bytes(f.a, KS_MEM_WEIGHTS) + ks_model_count_repack_bytes(f.model),
               held);
  for (uint32_t i = 0; i <= 7 * TINY_LAYER; i++)
    KS_ASSERT_EQ(get_matrix(&f, i)->packed, 0);
  KS_ASSERT_EQ(ks_model_get_embd(f.model)->packed, 0);
  ks_model_drop_repacked(f.model);
  close_fixture(&f);
}

/* Never more than the room, and as much as fits: a matrix that is too large is passed over, later
 * ones are still taken.  Without room there is no copy at all. */
KS_TEST(model_repack, inside_the_room)
{
  tiny_spec spec = {.arch = "qwen2", .matrix_type = KS_DTYPE_Q4_1, .scale = 8, .own_output = true};
  uint64_t whole, least;
  fixture f;

  open_fixture(&f, &spec, 0);
  KS_ASSERT_EQ(ks_model_get_repacked_bytes(f.model), 0);
  whole = ks_model_count_repack_bytes(f.model);
  least = get_matrix(&f, 1)->row_bytes * get_matrix(&f, 1)->n_out; /* wk: the smallest */
  for (uint64_t room = 0; room <= whole + least; room += least / 3) {
    uint64_t n_packed = 0;

    ks_model_repack(f.model, room, NULL, NULL);
    KS_ASSERT_LE(ks_model_get_repacked_bytes(f.model), room);
    for (uint32_t i = 0; i <= 7 * TINY_LAYER; i++) {
      const ks_weight *w = get_matrix(&f, i);

      if (w->packed != 0)
        check_copied(w);
      n_packed += w->packed != 0 ? w->row_bytes * w->n_out : 0;
      /* What was left out did not fit beside what is there. */
      KS_ASSERT(w->packed != 0 ||
                w->row_bytes * w->n_out > room - ks_model_get_repacked_bytes(f.model));
    }
    KS_ASSERT_LE(n_packed, ks_model_get_repacked_bytes(f.model));
    KS_ASSERT_LT(ks_model_get_repacked_bytes(f.model), n_packed + 64 * (7 * TINY_LAYER + 1));
  }
  KS_ASSERT_EQ(ks_model_get_repacked_bytes(f.model), whole);
  KS_ASSERT_EQ(ks_model_get_embd(f.model)->packed, 0); /* another matrix than the output */
  close_fixture(&f);
}

/* Types without another form stay where they are, and a fused matrix is copied by its parts. */
KS_TEST(model_repack, plain_types_and_fused_matrices)
{
  tiny_spec spec = {.arch = "llama"};
  tiny_spec fused = {.arch = "phi3", .matrix_type = KS_DTYPE_Q4_0, .scale = 8};
  fixture f;

  open_fixture(&f, &spec, UINT64_MAX);
  KS_ASSERT_EQ(ks_model_count_repack_bytes(f.model), 0);
  KS_ASSERT_EQ(ks_model_get_repacked_bytes(f.model), 0);
  close_fixture(&f);
  open_fixture(&f, &fused, UINT64_MAX);
  for (uint32_t i = 0; i <= 7 * TINY_LAYER; i++)
    check_copied(get_matrix(&f, i));
  close_fixture(&f);
}

static bool
stop_third(void *user)
{
  int *n = user;

  return ++*n == 3;
}

/* Memory that is not there, or a load that is stopped, leaves a model without a copy that works. */
KS_TEST(model_repack, no_memory_and_stopped)
{
  tiny_spec spec = {.arch = "llama", .matrix_type = KS_DTYPE_Q8_0, .scale = 8};
  uint64_t plain;
  int n_asked = 0;
  fixture f;

  open_fixture(&f, &spec, 0);
  plain = ks_model_get_weight_bytes(f.model);
  ks_alloc_fail_after(f.a, 0);
  ks_model_repack(f.model, UINT64_MAX, NULL, NULL);
  ks_alloc_fail_after(f.a, -1);
  KS_ASSERT_EQ(ks_model_get_repacked_bytes(f.model), 0);
  KS_ASSERT_EQ(ks_model_get_weight_bytes(f.model), plain);
  ks_model_repack(f.model, UINT64_MAX, stop_third, &n_asked);
  KS_ASSERT_EQ(n_asked, 3);
  KS_ASSERT_EQ(ks_model_get_weight_bytes(f.model), plain);
  for (uint32_t i = 0; i <= 7 * TINY_LAYER; i++)
    KS_ASSERT_EQ(get_matrix(&f, i)->packed, 0);
  close_fixture(&f);
}

/* The file's pages of what was copied leave the process, the table's of a tied output as well, and
 * reading them afterwards still gives the file's bytes. */
KS_TEST(model_repack, pages_of_the_file_go)
{
  tiny_spec spec = {.arch = "llama", .matrix_type = KS_DTYPE_Q8_0, .scale = 8};
  size_t copied = 0, mapped, before, after;
  fixture f;

  open_fixture(&f, &spec, UINT64_MAX);
  for (uint32_t i = 0; i <= 7 * TINY_LAYER; i++) {
    check_copied(get_matrix(&f, i)); /* reads every page of it */
    copied += whole_pages(get_matrix(&f, i));
  }
  KS_ASSERT_GE(copied, 1 << 20);
  before = resident_bytes(&f, &mapped);
  KS_ASSERT_GE(before, copied);
  ks_model_repack(f.model, UINT64_MAX, NULL, NULL);
  after = resident_bytes(&f, &mapped);
  printf("# %zu of %zu KiB of the file were in memory, %zu after\n", before / 1024, mapped / 1024,
         after / 1024);
  KS_ASSERT_LE(after + copied, mapped);
  for (uint32_t i = 0; i <= 7 * TINY_LAYER; i++)
    check_copied(get_matrix(&f, i));
  close_fixture(&f);
}

KS_TEST_MAIN
