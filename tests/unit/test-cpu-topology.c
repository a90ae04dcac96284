/* test-cpu-topology.c - cores of made-up machines, described as the kernel describes them. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-topology.h"
#include "tests/ks-test.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct machine {
  char root[64];
  cpu_set_t all;
} machine;

static void
open_machine(machine *m, int n_cpu)
{
  snprintf(m->root, sizeof(m->root), "/tmp/ks-topology-XXXXXX");
  KS_ASSERT(mkdtemp(m->root) != NULL);
  CPU_ZERO(&m->all);
  for (int cpu = 0; cpu < n_cpu; cpu++)
    CPU_SET(cpu, &m->all);
}

/* Writes text to a file below the root and makes its folders. */
static void
put(const machine *m, const char *name, const char *text)
{
  char path[256];
  FILE *f;

  snprintf(path, sizeof(path), "%s/%s", m->root, name);
  for (char *p = path + strlen(m->root) + 1; (p = strchr(p, '/')) != NULL; *p++ = '/') {
    *p = '\0';
    (void)mkdir(path, 0700);
  }
  f = fopen(path, "w");
  KS_ASSERT(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void
put_cpu(const machine *m, int cpu, const char *name, const char *text)
{
  char path[128];

  snprintf(path, sizeof(path), "devices/system/cpu/cpu%d/%s", cpu, name);
  put(m, path, text);
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
  (void)st;
  (void)kind;
  (void)where;
  return remove(path);
}

static void
close_machine(machine *m)
{
  KS_ASSERT_EQ(nftw(m->root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* Siblings share a core: it counts once, and also when only its second processor is allowed. */
KS_TEST(cpu_topology, siblings)
{
  cpu_set_t some;
  machine m;

  open_machine(&m, 4);
  KS_ASSERT_EQ(ks_cpu_count_cores(m.root, &m.all), 4); /* nothing is known */
  put_cpu(&m, 0, "topology/thread_siblings_list", "0,2\n");
  put_cpu(&m, 1, "topology/thread_siblings_list", "1,3\n");
  put_cpu(&m, 2, "topology/thread_siblings_list", "0,2\n");
  put_cpu(&m, 3, "topology/thread_siblings_list", "1,3\n");
  KS_ASSERT_EQ(ks_cpu_count_cores(m.root, &m.all), 2);
  CPU_ZERO(&some);
  CPU_SET(2, &some);
  CPU_SET(3, &some);
  KS_ASSERT_EQ(ks_cpu_count_cores(m.root, &some), 2);
  close_machine(&m);
}

/* Hybrid x86: four fast processors on two cores and eight slow ones; the fast cores are used, the
 * slow ones only where no fast one is allowed.  A broken list counts for nothing. */
KS_TEST(cpu_topology, hybrid)
{
  cpu_set_t slow;
  machine m;

  open_machine(&m, 12);
  for (int cpu = 0; cpu < 4; cpu++)
    put_cpu(&m, cpu, "topology/thread_siblings_list", cpu < 2 ? "0-1\n" : "2-3\n");
  put(&m, "devices/cpu_core/cpus", "0-1,2,3\n");
  KS_ASSERT_EQ(ks_cpu_count_cores(m.root, &m.all), 2);
  CPU_ZERO(&slow);
  for (int cpu = 4; cpu < 12; cpu++)
    CPU_SET(cpu, &slow);
  KS_ASSERT_EQ(ks_cpu_count_cores(m.root, &slow), 8);
  put(&m, "devices/cpu_core/cpus", "99999999999-1,x");
  KS_ASSERT_EQ(ks_cpu_count_cores(m.root, &m.all), 10);
  close_machine(&m);
}

/* Capacities: big cores of 1024 and 980, little ones of 430. */
KS_TEST(cpu_topology, capacities)
{
  static const char *const capacity[] = {"430", "430", "980", "980", "980", "1024"};
  machine m;

  open_machine(&m, 6);
  for (int cpu = 0; cpu < 6; cpu++)
    put_cpu(&m, cpu, "cpu_capacity", capacity[cpu]);
  KS_ASSERT_EQ(ks_cpu_count_cores(m.root, &m.all), 4);
  for (int cpu = 0; cpu < 6; cpu++)
    put_cpu(&m, cpu, "cpu_capacity", "1024");
  KS_ASSERT_EQ(ks_cpu_count_cores(m.root, &m.all), 6);
  for (int cpu = 0; cpu < 6; cpu++)
    put_cpu(&m, cpu, "cpu_capacity", "?");
  KS_ASSERT_EQ(ks_cpu_count_cores(m.root, &m.all), 6);
  close_machine(&m);
}

KS_TEST_MAIN
