/* test-status.c - error text is stored, cut and prefixed as promised. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/status.h"
#include "tests/ks-test.h"

/* A text longer than the buffer is cut, never written past it. */
KS_TEST(status, long_text_is_cut)
{
  ks_error err;
  char text[2000];

  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  KS_ASSERT_STATUS(KS_ERR_IO, ks_fail(&err, KS_ERR_IO, "%s", text));
  KS_ASSERT_EQ(strlen(err.text), sizeof err.text - 1);
  KS_ASSERT_EQ(err.status, KS_ERR_IO);
}

/* The context stands first, and NULL is allowed everywhere. */
KS_TEST(status, prefix)
{
  ks_error err;

  KS_ASSERT_STATUS(KS_ERR_FORMAT, ks_fail(&err, KS_ERR_FORMAT, "tensor %s", "a"));
  KS_ASSERT_STATUS(KS_ERR_FORMAT, ks_fail_prefix(&err, KS_ERR_FORMAT, "m.gguf"));
  KS_ASSERT_STR(err.text, "m.gguf: tensor a");
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_fail(NULL, KS_ERR_ARG, "x"));
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_fail_prefix(NULL, KS_ERR_ARG, "x"));
}

KS_TEST_MAIN
