/* backend.c - the registry of compute backends and the loading of modules.
 * A module is a shared library libkeepsake-NAME.so that exports ks_backend_entry; its table must
 * have this build's ABI number and size and no empty entry.  A module that cannot be used is no
 * error: the program starts, and the reason is kept. The registry is filled once and constant
 * afterwards: modules are never unloaded. Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/backend.h"
#include "engine/module-dir.h" /* written by the build */

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BACKENDS 8
#define MAX_REFUSALS 8
#define PREFIX "libkeepsake-"

typedef const ks_backend_table *(*entry_fn)(void);

typedef struct registry {
  const ks_backend_table *tables[MAX_BACKENDS];
  size_t n_table;
  char refusals[MAX_REFUSALS][512];
  size_t n_refusal;
} registry;

static void
refuse(registry *reg, const char *file, const char *reason)
{
  if (reg->n_refusal < MAX_REFUSALS)
    snprintf(reg->refusals[reg->n_refusal++], sizeof(reg->refusals[0]), "%s: %s", file, reason);
}

/* NULL when the table can be used, else what is wrong with it. */
static const char *
find_fault(const registry *reg, const ks_backend_table *t)
{
  const size_t first = offsetof(ks_backend_table, probe);

  if (t == NULL)
    return "the module gave no table";
  if (t->abi != KS_BACKEND_ABI || t->size != sizeof(*t))
    return "the module was built for another version of Keepsake: install both from one build";
  /* From probe on every member is a function pointer; all of them are mandatory. */
  for (size_t at = first; at < sizeof(*t); at += sizeof(void *)) {
    void *entry;

    memcpy(&entry, (const unsigned char *)t + at, sizeof(entry));
    if (entry == NULL)
      return "the module's table has an empty entry";
  }
  if (t->name == NULL || t->name[0] == '\0')
    return "the module's table has no name";
  for (size_t i = 0; i < reg->n_table; i++)
    if (strcmp(reg->tables[i]->name, t->name) == 0)
      return "a backend of this name is there already";
  if (reg->n_table == MAX_BACKENDS)
    return "there are too many backends";
  return NULL;
}

static void
load_module(registry *reg, const char *dir, const char *file)
{
  char path[4096];
  void *module, *symbol;
  entry_fn entry;
  const ks_backend_table *table;
  const char *fault;

  if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path)) {
    refuse(reg, file, "the path is too long");
    return;
  }
  module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (module == NULL) {
    const char *reason = dlerror();

    refuse(reg, file, reason != NULL ? reason : "it cannot be loaded");
    return;
  }
  symbol = dlsym(module, "ks_backend_entry");
  if (symbol == NULL) {
    refuse(reg, file, "it does not export ks_backend_entry");
    dlclose(module);
    return;
  }
  memcpy(&entry, &symbol, sizeof(entry)); /* an object pointer by POSIX, a function by nature */
  table = entry();
  fault = find_fault(reg, table);
  if (fault != NULL) {
    refuse(reg, file, fault);
    dlclose(module);
    return;
  }
  reg->tables[reg->n_table++] = table;
}

static int
is_module(const struct dirent *entry)
{
  size_t n = strlen(entry->d_name);

  return strncmp(entry->d_name, PREFIX, sizeof(PREFIX) - 1) == 0 && n > sizeof(PREFIX) + 2 &&
         strcmp(entry->d_name + n - 3, ".so") == 0;
}

static void
fill(registry *reg)
{
  const char *dir = getenv("KEEPSAKE_MODULE_DIR");
  struct dirent **files = NULL;
  int n_file;

  reg->tables[reg->n_table++] = ks_cpu_backend_entry();
  dir = dir != NULL && dir[0] != '\0' ? dir : KS_MODULE_DIR;
  n_file = scandir(dir, &files, is_module, alphasort);
  for (int i = 0; i < n_file; i++) {
    load_module(reg, dir, files[i]->d_name);
    free(files[i]);
  }
  free(files);
}

/* The one registry: it has to outlive every device, and a module cannot be loaded twice anyhow. */
static registry the_registry;
static pthread_once_t filled_once = PTHREAD_ONCE_INIT;

static void
fill_once(void)
{
  fill(&the_registry);
}

static const registry *
get_registry(void)
{
  (void)pthread_once(&filled_once, fill_once);
  return &the_registry;
}

size_t
ks_backend_list(const ks_backend_table **tables, size_t capacity)
{
  const registry *reg = get_registry();

  for (size_t i = 0; i < reg->n_table && i < capacity; i++)
    tables[i] = reg->tables[i];
  return reg->n_table;
}

const char *
ks_backend_get_refusal(size_t i)
{
  const registry *reg = get_registry();

  return i < reg->n_refusal ? reg->refusals[i] : NULL;
}

static ks_status
refuse_name(const registry *reg, const char *name, ks_error *err)
{
  char known[256] = "", refused[320] = "";
  size_t n = 0;

  for (size_t i = 0; i < reg->n_table && n < sizeof(known); i++)
    n += (size_t)snprintf(known + n, sizeof(known) - n, "%s%s", i > 0 ? ", " : "",
                          reg->tables[i]->name);
  if (reg->n_refusal > 0)
    snprintf(refused, sizeof(refused), " (not usable: %.280s)", reg->refusals[0]);
  return ks_fail(err, KS_ERR_UNSUPPORTED, "there is no backend \"%.64s\"; this program has: %s%s",
                 name, known, refused);
}

ks_status
ks_backend_open(const char *name, const ks_dev_params *params, ks_backend *out, ks_error *err)
{
  const registry *reg = get_registry();

  for (size_t i = 0; i < reg->n_table; i++) {
    ks_dev *dev;
    ks_status status;

    if (strcmp(reg->tables[i]->name, name) != 0)
      continue;
    status = reg->tables[i]->open(params, &dev, err);
    if (status != KS_OK)
      return status;
    out->t = reg->tables[i];
    out->dev = dev;
    return KS_OK;
  }
  return refuse_name(reg, name, err);
}

void
ks_backend_close(ks_backend *be)
{
  if (be == NULL || be->t == NULL)
    return;
  be->t->close(be->dev);
  be->t = NULL;
  be->dev = NULL;
}
