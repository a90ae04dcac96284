/* fuzz-import.c - any bytes as a session's bundle.  What is refused is refused with an error and
 * changes nothing; what is taken keeps the store sound, and exported twice it gives the same bytes.
 * The parser sees every input; the store, which waits for a disk, every 16th that parses. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-bundle.h"
#include "storage/ks-export.h"
#include "tests/fuzz/fuzz.h"

#include <glib/gstdio.h>
#include <stdlib.h>

#define STORE_EVERY 16

static void
require(gboolean promise)
{
  if (!promise)
    abort();
}

/* In memory where the system has such a folder. */
static char *
make_folder(void)
{
  char *folder = g_strdup("/dev/shm/ks-fuzz-import-XXXXXX");

  if (g_mkdtemp(folder) != NULL)
    return folder;
  g_free(folder);
  return g_dir_make_tmp("ks-fuzz-import-XXXXXX", NULL);
}

static void
remove_folder(const char *folder)
{
  static const char *const names[] = {"blobs", "sessions.db-wal", "sessions.db-shm", "sessions.db"};

  for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
    g_autofree char *path = g_build_filename(folder, names[i], NULL);

    (void)g_remove(path);
  }
  require(g_rmdir(folder) == 0);
}

/* Imported, exported, imported, exported: both exports are equal. */
static void
round_trip(KsStore *store, GBytes *bytes)
{
  g_autoptr(KsSession) first = ks_import_bundle(store, bytes, NULL), second = NULL;
  g_autoptr(GBytes) a = NULL, b = NULL;

  require(first != NULL);
  a = ks_export_session(store, ks_session_get_id(first), KS_EXPORT_JSON, NULL);
  require(a != NULL);
  second = ks_import_bundle(store, a, NULL);
  require(second != NULL);
  b = ks_export_session(store, ks_session_get_id(second), KS_EXPORT_JSON, NULL);
  require(b != NULL && g_bytes_equal(a, b));
  require(ks_store_check(store, NULL));
  require(ks_store_delete_all(store, NULL));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
  static guint n_parsed;
  g_autoptr(GBytes) bytes = g_bytes_new_static(data, n);
  g_autoptr(GError) error = NULL;
  g_autoptr(KsBundle) bundle = ks_bundle_parse(bytes, &error);

  require((bundle == NULL) == (error != NULL));
  if (bundle != NULL && n_parsed++ % STORE_EVERY == 0) {
    g_autofree char *folder = make_folder();
    KsStore *store = ks_store_open(folder, FALSE, NULL);

    require(store != NULL);
    round_trip(store, bytes);
    g_object_unref(store);
    remove_folder(folder);
  }
  return 0;
}
