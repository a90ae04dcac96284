/* test-mutations.c - fuzz replay for each format of the worker: seeded mutations of sound files,
 * each through a worker of its own with the decoder that a user's file would get.
 * KS_MUTATIONS in the environment overrides the number for each file.  A mutation depends on the
 * file, its number and the seed only; the one that failed is named. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/media/media-fixture.h"

#define N_MUTATION 40
#define SEED 1
#define MAX_PEAK_MIB 1200
#define MAX_SECONDS 60

static char *folder;

/* Edits of the kind that get past a first check: bits, bytes, 16- and 32-bit numbers of both
 * orders, pieces removed, doubled or moved. */
static void
mutate (GByteArray *data, GRand *rand)
{
  static const guint32 odd[] = {0,      1,      0x7f,       0x80,       0xff,       0x7fff,
                                0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff};
  guint n_edit = (guint)g_rand_int_range (rand, 1, 6);

  for (guint i = 0; i < n_edit && data->len > 8; i++) {
    guint at = (guint)g_rand_int_range (rand, 0, (gint32)data->len - 4);
    guint n_wished = (guint)g_rand_int_range (rand, 1, 64), n = MIN (n_wished, data->len - at);
    guint32 value = odd[g_rand_int_range (rand, 0, G_N_ELEMENTS (odd))];

    switch (g_rand_int_range (rand, 0, 7)) {
    case 0:
      data->data[at] ^= (guint8)(1u << g_rand_int_range (rand, 0, 8));
      break;
    case 1:
      data->data[at] = (guint8)g_rand_int (rand);
      break;
    case 2:
      value = g_rand_boolean (rand) ? GUINT32_TO_BE (value) : GUINT32_TO_LE (value);
      memcpy (data->data + at, &value, 4);
      break;
    case 3:
      data->data[at] = (guint8)(value >> 8);
      data->data[at + 1] = (guint8)value;
      break;
    case 4:
      g_byte_array_remove_range (data, at, n);
      break;
    case 5: {
      g_autofree guint8 *piece = g_memdup2 (data->data + at, n);

      g_byte_array_append (data, piece, n);
      break;
    }
    default:
      memmove (data->data + g_rand_int_range (rand, 0, (gint32)(data->len - n) + 1),
               data->data + at, n);
    }
  }
}

/* A sound file and each mutation of it: a result or a sentence in time, memory under the bound, and
 * a decoder that neither crashed nor broke the protocol. */
static void
test_file (gconstpointer data)
{
  const char *name = data, *asked = g_getenv ("KS_MUTATIONS");
  guint n_mutation = asked != NULL ? (guint)g_ascii_strtoull (asked, NULL, 10) : N_MUTATION;
  g_autofree char *path = g_build_filename (folder, name, NULL), *bytes = NULL;
  guint n_result = 0;
  gsize n;

  g_assert_true (g_file_get_contents (path, &bytes, &n, NULL));
  for (guint i = 0; i <= n_mutation; i++) {
    g_autoptr (GRand) rand = g_rand_new_with_seed (SEED + i);
    GByteArray *edited = g_byte_array_append (g_byte_array_new (), (guint8 *)bytes, (guint)n);
    g_autoptr (GBytes) file = NULL;
    guint64 peak_bytes = 0;
    KsMediaOptions options = {.name = name, .max_side_px = 256, .out_peak_bytes = &peak_bytes};
    g_autoptr (GError) error = NULL;
    g_autoptr (KsMediaResult) result = NULL;
    gint64 begin_us = g_get_monotonic_time ();

    if (i > 0)
      mutate (edited, rand);
    file = g_byte_array_free_to_bytes (edited);
    result = ks_media_load_bytes (file, &options, NULL, &error);
    n_result += result != NULL;
    if (i == 0)
      g_assert_no_error (error);
    if (error != NULL && (error->code == KS_MEDIA_ERROR_WORKER || !strstr (error->message, name)))
      g_test_fail_printf ("%s, mutation %u: %s", name, i, error->message);
    if (g_get_monotonic_time () - begin_us > MAX_SECONDS * G_USEC_PER_SEC)
      g_test_fail_printf ("%s, mutation %u: took over %d s", name, i, MAX_SECONDS);
#ifndef __SANITIZE_ADDRESS__
    if (peak_bytes >> 20 > MAX_PEAK_MIB)
      g_test_fail_printf ("%s, mutation %u: took %" G_GUINT64_FORMAT " MiB", name, i,
                          peak_bytes >> 20);
#endif
    assert_no_children ();
  }
  g_test_message ("%s: %u of %u read", name, n_result, n_mutation + 1);
}

int
main (int argc, char **argv)
{
  g_autofree char *list = NULL;
  g_auto (GStrv) names = NULL;
  GKeyFile *cases = g_key_file_new ();
  int code;

  g_test_init (&argc, &argv, NULL);
  folder = make_files ("seeds");
  list = g_build_filename (folder, "cases.ini", NULL);
  g_assert_true (g_key_file_load_from_file (cases, list, G_KEY_FILE_NONE, NULL));
  names = g_key_file_get_groups (cases, NULL);
  g_assert_cmpuint (g_strv_length (names), >=, 12);
  for (guint i = 0; names[i] != NULL; i++) {
    g_autofree char *path = g_strdup_printf ("/mutations/%s", names[i]);

    g_test_add_data_func (path, names[i], test_file);
  }
  code = g_test_run ();
  g_key_file_free (cases);
  remove_tree (folder);
  g_free (folder);
  return code;
}
