/* status.c - formatting of error text. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/status.h"

#include <stdio.h>
#include <string.h>

/* Length of the well-formed UTF-8 sequence at p (NUL-terminated), 0 when there is none. */
static int
sequence_length(const unsigned char *p)
{
  int n = p[0] < 0x80   ? 1
          : p[0] < 0xc2 ? 0
          : p[0] < 0xe0 ? 2
          : p[0] < 0xf0 ? 3
          : p[0] < 0xf5 ? 4
                        : 0;

  for (int i = 1; i < n; i++)
    if ((p[i] & 0xc0) != 0x80)
      return 0;
  if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
      (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
    return 0;
  return n;
}

/* Texts quote names out of files: what is no UTF-8 or would steer a terminal becomes '?'. */
static void
make_printable(char *text)
{
  unsigned char *p = (unsigned char *)text;

  while (*p != '\0') {
    int n = sequence_length(p);

    if (n == 0 || *p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0)) {
      *p = '?';
      n = 1;
    }
    p += n;
  }
}

ks_status
ks_fail_va(ks_error *err, ks_status status, const char *fmt, va_list args)
{
  if (err != NULL) {
    err->status = status;
    if (vsnprintf(err->text, sizeof err->text, fmt, args) < 0)
      err->text[0] = '\0';
    make_printable(err->text);
  }
  return status;
}

ks_status
ks_fail(ks_error *err, ks_status status, const char *fmt, ...)
{
  va_list args;

  va_start(args, fmt);
  ks_fail_va(err, status, fmt, args);
  va_end(args);
  return status;
}

ks_status
ks_fail_prefix(ks_error *err, ks_status status, const char *context)
{
  char old[sizeof err->text];

  if (err != NULL) {
    memcpy(old, err->text, sizeof old);
    old[sizeof old - 1] = '\0';
    err->status = status;
    /* The cut at the end is intended: the context is the more useful half. */
    if (snprintf(err->text, sizeof err->text, "%s: %s", context, old) < 0)
      err->text[0] = '\0';
    make_printable(err->text); /* the cut may have split a character */
  }
  return status;
}

const char *
ks_status_name(ks_status status)
{
  switch (status) {
  case KS_OK:
    return "ok";
  case KS_ERR_NOMEM:
    return "out of memory";
  case KS_ERR_BUDGET:
    return "budget";
  case KS_ERR_FORMAT:
    return "format";
  case KS_ERR_UNSUPPORTED:
    return "unsupported";
  case KS_ERR_ARG:
    return "argument";
  case KS_ERR_IO:
    return "input/output";
  case KS_ERR_CANCELLED:
    return "cancelled";
  case KS_ERR_LOST:
    return "device lost";
  }
  return "unknown";
}
