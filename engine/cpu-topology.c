/* cpu-topology.c - see cpu-topology.h.
 * Two ways tell slow cores: the list of the fast ones (hybrid x86: devices/cpu_core/cpus), and a
 * capacity for each processor (cpu_capacity, 1024 = the fastest kind).  Neither is there on a
 * machine of equal cores.  Every file may be absent or hold anything. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-topology.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_PATH_BYTES 512
#define SLOW_PERCENT 75 /* of the largest capacity; turbo bins of equal cores differ by less */

bool
ks_sys_read_text(const char *path, char *text, size_t size)
{
  FILE *f = fopen(path, "re");
  size_t n;

  if (f == NULL)
    return false;
  n = fread(text, 1, size - 1, f);
  text[n] = '\0';
  fclose(f);
  return n > 0;
}

/* The same below sys_root. */
static bool
read_text(const char *sys_root, const char *name, char *text, size_t size)
{
  char path[MAX_PATH_BYTES];

  return snprintf(path, sizeof(path), "%s/%s", sys_root, name) < (int)sizeof(path) &&
         ks_sys_read_text(path, text, size);
}

/* Value of a file of processor cpu; -1 when it is not there. */
static long
read_number(const char *sys_root, int cpu, const char *name)
{
  char path[MAX_PATH_BYTES], text[64], *end;
  long value;

  snprintf(path, sizeof(path), "devices/system/cpu/cpu%d/%s", cpu, name);
  if (!read_text(sys_root, path, text, sizeof(text)))
    return -1;
  value = strtol(text, &end, 10);
  return end != text ? value : -1;
}

/* "0-3,8,10-11" as a set; what cannot be read ends it. */
static void
parse_list(const char *text, cpu_set_t *out)
{
  CPU_ZERO(out);
  while (*text >= '0' && *text <= '9') {
    char *end;
    long first = strtol(text, &end, 10), last = first;

    if (*end == '-')
      last = strtol(end + 1, &end, 10);
    for (long cpu = first; cpu >= 0 && cpu <= last && cpu < CPU_SETSIZE; cpu++)
      CPU_SET(cpu, out);
    text = *end == ',' ? end + 1 : end;
  }
}

/* The allowed processors of the fast kind, or all allowed ones where there is one kind only. */
static void
choose_fast(const char *sys_root, const cpu_set_t *allowed, cpu_set_t *out)
{
  char text[4096];
  long most = 0;

  CPU_ZERO(out);
  if (read_text(sys_root, "devices/cpu_core/cpus", text, sizeof(text))) {
    parse_list(text, out);
    CPU_AND(out, out, allowed);
  } else {
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
      long capacity = CPU_ISSET(cpu, allowed) ? read_number(sys_root, cpu, "cpu_capacity") : -1;

      most = capacity > most ? capacity : most;
    }
    for (int cpu = 0; most > 0 && cpu < CPU_SETSIZE; cpu++)
      if (CPU_ISSET(cpu, allowed) &&
          read_number(sys_root, cpu, "cpu_capacity") >= most / 100 * SLOW_PERCENT)
        CPU_SET(cpu, out);
  }
  if (CPU_COUNT(out) == 0)
    *out = *allowed;
}

uint32_t
ks_cpu_count_cores(const char *sys_root, const cpu_set_t *allowed)
{
  cpu_set_t set;
  uint32_t n = 0;

  choose_fast(sys_root, allowed, &set);
  /* A processor counts when no sibling with a smaller number is in the set. */
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    long first;

    if (!CPU_ISSET(cpu, &set))
      continue;
    first = read_number(sys_root, cpu, "topology/thread_siblings_list");
    n += first == cpu || first < 0 || first >= CPU_SETSIZE || !CPU_ISSET(first, &set);
  }
  return n;
}
