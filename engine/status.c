/* status.c - formatting of error text. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/status.h"

#include <stdio.h>
#include <string.h>

ks_status
ks_fail_va(ks_error *err, ks_status status, const char *fmt, va_list args)
{
  if (err != NULL) {
    err->status = status;
    vsnprintf(err->text, sizeof err->text, fmt, args);
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
