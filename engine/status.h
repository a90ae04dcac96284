/* status.h - result codes, error text and the macros that every engine header uses.
 * Invariant: outputs named out_* are set only when a function returns KS_OK.
 * Threads: no shared state; a ks_error belongs to its caller. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define KS_BEGIN_DECLS extern "C" {
#define KS_END_DECLS }
#else
#define KS_BEGIN_DECLS
#define KS_END_DECLS
#endif

#define KS_CHECK __attribute__((warn_unused_result))
#define KS_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

KS_BEGIN_DECLS

typedef enum ks_status {
  KS_OK = 0,
  KS_ERR_NOMEM,       /* the allocator said no: the system's limit or an injected failure */
  KS_ERR_BUDGET,      /* does not fit the memory target the user set */
  KS_ERR_FORMAT,      /* a file or text is damaged or breaks its format */
  KS_ERR_UNSUPPORTED, /* well formed, but something this build does not know; the text names it */
  KS_ERR_ARG,         /* the caller asked for something impossible */
  KS_ERR_IO,          /* the operating system failed to read or write */
  KS_ERR_CANCELLED,   /* stopped on request; state is as after the last finished step */
  KS_ERR_LOST         /* the device is gone */
} ks_status;

typedef struct ks_error {
  ks_status status;
  char text[512]; /* UTF-8 without control characters, one sentence; cut at the end */
} ks_error;

/* Stores status and text in err (may be NULL) and returns status, so that callers write
 * `return ks_fail(err, KS_ERR_FORMAT, "tensor %s: ...", name);`. */
ks_status ks_fail(ks_error *err, ks_status status, const char *fmt, ...) KS_PRINTF(3, 4);
ks_status ks_fail_va(ks_error *err, ks_status status, const char *fmt, va_list args);

/* Puts "context: " before the text already in err; err may be NULL.  Returns status. */
ks_status ks_fail_prefix(ks_error *err, ks_status status, const char *context);

/* English name of a code, for logs and tests ("budget"), never NULL. */
const char *ks_status_name(ks_status status);

KS_END_DECLS
