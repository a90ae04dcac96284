/* test-memory-words.c - sizes, counts and findings as sentences. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/fake-memory.h"
#include "tests/ui/ui-test.h"
#include "ui/ks-memory-words.h"

static void
assert_words (char *words, const char *expected)
{
  g_assert_cmpstr (words, ==, expected);
  g_assert_true (g_utf8_validate (words, -1, NULL));
  g_free (words);
}

/* One decimal at most, none that says nothing; a pair names its unit once where both share it. */
static void
test_sizes (void)
{
  assert_words (ks_words_size (98 * FAKE_MIB), "98\u00a0MiB");
  assert_words (ks_words_size (118 * FAKE_MIB / 10), "11.8\u00a0MiB");
  assert_words (ks_words_size_of (382 * FAKE_MIB / 10, 160 * FAKE_MIB), "38.2 of 160\u00a0MiB");
  assert_words (ks_words_size_of (900 * 1024, 1536 * FAKE_MIB), "900\u00a0KiB of 1.5\u00a0GiB");
  assert_words (ks_words_size_of (0, 271 * FAKE_MIB / 10), "0 of 27.1\u00a0MiB");
  assert_words (ks_words_size_of (100 * FAKE_MIB, 110 * FAKE_MIB), "100 of 110\u00a0MiB");
  assert_words (ks_words_size (1009 * FAKE_MIB / 10), "101\u00a0MiB");
  assert_words (ks_words_size (9999 * FAKE_MIB / 1000), "10\u00a0MiB");
  assert_words (ks_words_size (1023 * FAKE_MIB + FAKE_MIB - 1), "1024\u00a0MiB");
  assert_words (ks_words_size (1023), "1023\u00a0bytes");
  g_free (ks_words_size_of (0, 0));
  g_free (ks_words_size_of (G_MAXUINT64, G_MAXUINT64));
}

/* Digits stand in groups also where the locale has none. */
static void
test_counts (void)
{
  assert_words (ks_words_count (0), "0");
  assert_words (ks_words_count (999), "999");
  assert_words (ks_words_count (1000), "1,000");
  assert_words (ks_words_count (1234567), "1,234,567");
}

/* Every part has a word, also without a model. */
static void
test_memory (void)
{
  g_autoptr (KsMemoryView) view = fake_memory_new (30, 3, 4);

  assert_words (ks_words_memory (view), "Weights 98\u00a0MiB · kept 11.8 of 12\u00a0MiB · scratch "
                                        "9\u00a0MiB · 71,204 entries let go");
  view->n_evicted = 1;
  assert_words (ks_words_let_go (1), "1 entry let go");
  assert_words (ks_words_let_go (G_MAXUINT64), "18,446,744,073,709,551,615 entries let go");
  assert_words (ks_words_memory (NULL), "No model is loaded");
}

/* Most and least are found by the layers' averages; no layers, no entries and equal layers have
 * sentences of their own. */
static void
test_layers (void)
{
  g_autoptr (KsMemoryView) view = fake_memory_new (30, 3, 4);
  g_autoptr (KsMemoryView) none = fake_memory_new (0, 0, 0);

  assert_words (ks_words_layers (view),
                "Layer 29 keeps most: 274 entries a head; layer 0 least: 13.");
  view->by_stream[7 * 3] = view->by_stream[7 * 3 + 1] = view->by_stream[7 * 3 + 2] = 412;
  view->by_stream[22 * 3] = view->by_stream[22 * 3 + 1] = 0;
  view->by_stream[22 * 3 + 2] = 3;
  assert_words (ks_words_layers (view),
                "Layer 7 keeps most: 412 entries a head; layer 22 least: 1.");
  assert_words (ks_words_cell (view, 7, 2), "Layer 7, head 2: 412 entries");
  assert_words (ks_words_layers (none), "Nothing is kept yet.");
  assert_words (ks_words_layers (NULL), "Nothing is kept yet.");
  for (guint i = 0; i < 90; i++)
    view->by_stream[i] = 5;
  assert_words (ks_words_layers (view), "Every layer keeps 5 entries a head.");
}

/* "100 %" means everything, "0 %" nothing. */
static void
test_share (void)
{
  assert_words (ks_words_share (0.42), "42 % kept");
  assert_words (ks_words_share (0), "0 % kept");
  assert_words (ks_words_share (0.001), "under 1 % kept");
  assert_words (ks_words_share (0.999), "99 % kept");
  assert_words (ks_words_share (1), "100 % kept");
  assert_words (ks_words_share (17), "100 % kept");
  assert_words (ks_words_share (0.0 / 0.0), "0 % kept");
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
  g_test_add_func ("/memory-words/sizes", test_sizes);
  g_test_add_func ("/memory-words/counts", test_counts);
  g_test_add_func ("/memory-words/memory", test_memory);
  g_test_add_func ("/memory-words/layers", test_layers);
  g_test_add_func ("/memory-words/share", test_share);
  return g_test_run ();
}
