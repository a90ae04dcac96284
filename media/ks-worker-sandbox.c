/* ks-worker-sandbox.c - see ks-worker-sandbox.h.
 * The filter is a list of what is allowed: memory without execution, reading, writing to what is
 * open already, one socket to send on, opening for reading only (where Landlock still decides).
 * Landlock by raw calls: the C library has no wrappers, and old headers lack newer rights. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-worker-sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#define LANDLOCK_VERSION 1u
#define LANDLOCK_PATH_BENEATH 1
#define RIGHT_READ_FILE (G_GUINT64_CONSTANT (1) << 2)

#define MAX_FILE_BYTES                                                                             \
  (G_GUINT64_CONSTANT (272) << 20) /* the largest result: 8192 x 8192 pixels                       \
                                    */
#define MAX_DESCRIPTORS 64

/* As in the kernel's interface, with the fields of later versions. */
typedef struct {
  guint64 handled_fs, handled_net, scoped;
} Ruleset;

typedef struct __attribute__ ((packed)) {
  guint64 allowed;
  gint32 parent_fd;
} PathRule;

static int
set_limit (int resource, guint64 value)
{
  struct rlimit limit = {(rlim_t)value, (rlim_t)value}, old;

  if (getrlimit (resource, &old) == 0 && old.rlim_max < limit.rlim_max)
    limit.rlim_cur = limit.rlim_max = old.rlim_max; /* never more than was there */
  return setrlimit (resource, &limit) == 0 ? 0 : errno;
}

int
ks_sandbox_limit (const KsWireRequest *request)
{
  struct rlimit cpu = {request->cpu_s, request->cpu_s + 5};
  int code;

  if (prctl (PR_SET_PDEATHSIG, SIGKILL) != 0 || prctl (PR_SET_DUMPABLE, 0) != 0 ||
      setrlimit (RLIMIT_CPU, &cpu) != 0)
    return errno;
  code = set_limit (RLIMIT_CORE, 0);
  if (code == 0)
    code = set_limit (RLIMIT_FSIZE, MAX_FILE_BYTES);
  if (code == 0)
    code = set_limit (RLIMIT_NOFILE, MAX_DESCRIPTORS);
#ifndef __SANITIZE_ADDRESS__
  if (code == 0)
    code = set_limit (RLIMIT_AS, request->memory_bytes);
#endif
  return code;
}

static int
allow_path (int ruleset_fd, const char *path)
{
  PathRule rule = {.allowed = RIGHT_READ_FILE};
  int code = 0;

  rule.parent_fd = open (path, O_PATH | O_CLOEXEC);
  if (rule.parent_fd < 0)
    return 0; /* not there: nothing to read */
  if (syscall (SYS_landlock_add_rule, ruleset_fd, LANDLOCK_PATH_BENEATH, &rule, 0) != 0)
    code = errno;
  close (rule.parent_fd);
  return code;
}

/* All rights of this kernel are taken away, then reading below paths is given back. */
static int
confine_by_landlock (const GPtrArray *paths)
{
  long version = syscall (SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION);
  guint n_right = version >= 5 ? 16 : version >= 3 ? 15 : version == 2 ? 14 : 13;
  Ruleset ruleset = {.handled_fs = (G_GUINT64_CONSTANT (1) << n_right) - 1,
                     .handled_net = version >= 4 ? 3 : 0,
                     .scoped = version >= 6 ? 3 : 0};
  gsize size = version >= 6 ? sizeof ruleset : version >= 4 ? 16 : 8;
  int fd, code = 0;

  if (version < 1)
    return 0; /* the kernel has none: seccomp alone */
  fd = (int)syscall (SYS_landlock_create_ruleset, &ruleset, size, 0);
  if (fd < 0)
    return errno;
  for (guint i = 0; i < paths->len && code == 0; i++)
    code = allow_path (fd, g_ptr_array_index (paths, i));
  if (code == 0 && syscall (SYS_landlock_restrict_self, fd, 0) != 0)
    code = errno;
  close (fd);
  return code;
}

/* Allowed with any arguments. */
static const int plain_calls[] = {
    SCMP_SYS (read),
    SCMP_SYS (pread64),
    SCMP_SYS (readv),
    SCMP_SYS (lseek),
    SCMP_SYS (write),
    SCMP_SYS (writev),
    SCMP_SYS (pwrite64),
    SCMP_SYS (close),
    SCMP_SYS (fstat),
    SCMP_SYS (newfstatat),
    SCMP_SYS (access),
    SCMP_SYS (faccessat),
    SCMP_SYS (fadvise64),
    SCMP_SYS (ftruncate),
    SCMP_SYS (munmap),
    SCMP_SYS (mremap),
    SCMP_SYS (madvise),
    SCMP_SYS (brk),
    SCMP_SYS (rt_sigaction),
    SCMP_SYS (rt_sigprocmask),
    SCMP_SYS (rt_sigreturn),
    SCMP_SYS (sigaltstack),
    SCMP_SYS (futex),
    SCMP_SYS (getrandom),
    SCMP_SYS (clock_gettime),
    SCMP_SYS (clock_getres),
    SCMP_SYS (gettimeofday),
    SCMP_SYS (time),
    SCMP_SYS (getpid),
    SCMP_SYS (gettid),
    SCMP_SYS (getuid),
    SCMP_SYS (geteuid),
    SCMP_SYS (getgid),
    SCMP_SYS (getegid),
    SCMP_SYS (getrlimit),
    SCMP_SYS (getrusage),
    SCMP_SYS (sysinfo),
    SCMP_SYS (sched_getaffinity),
    SCMP_SYS (sched_yield),
    SCMP_SYS (memfd_create),
    SCMP_SYS (exit),
    SCMP_SYS (exit_group),
    SCMP_SYS (restart_syscall),
};

static int
add_plain (scmp_filter_ctx filter)
{
  int code = 0;

  for (gsize i = 0; i < G_N_ELEMENTS (plain_calls) && code == 0; i++) {
    code = seccomp_rule_add (filter, SCMP_ACT_ALLOW, plain_calls[i], 0);
    if (code == -EDOM) /* a call that this machine's architecture never had */
      code = 0;
  }
  return code;
}

/* Opening for reading, without any flag that makes or changes a file. */
static int
add_opening (scmp_filter_ctx filter)
{
  const scmp_datum_t changing =
      O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY);
  int code = seccomp_rule_add (filter, SCMP_ACT_ALLOW, SCMP_SYS (openat), 1,
                               SCMP_A2 (SCMP_CMP_MASKED_EQ, changing, 0));

#ifdef __NR_open
  if (code == 0)
    code = seccomp_rule_add (filter, SCMP_ACT_ALLOW, SCMP_SYS (open), 1,
                             SCMP_A1 (SCMP_CMP_MASKED_EQ, changing, 0));
#endif
  return code;
}

static int
add_checked (scmp_filter_ctx filter)
{
  static const int fcntl_commands[] = {F_GETFD,     F_SETFD,     F_GETFL,
                                       F_ADD_SEALS, F_GET_SEALS, F_DUPFD_CLOEXEC};
  int code = add_opening (filter);

  if (code == 0)
    code = seccomp_rule_add (filter, SCMP_ACT_ALLOW, SCMP_SYS (mmap), 1,
                             SCMP_A2 (SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
  if (code == 0)
    code = seccomp_rule_add (filter, SCMP_ACT_ALLOW, SCMP_SYS (mprotect), 1,
                             SCMP_A2 (SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
  if (code == 0)
    code = seccomp_rule_add (filter, SCMP_ACT_ALLOW, SCMP_SYS (sendmsg), 1,
                             SCMP_A0 (SCMP_CMP_EQ, KS_WIRE_SOCKET_FD));
  /* abort(): a signal to itself, nobody else. */
  if (code == 0)
    code = seccomp_rule_add (filter, SCMP_ACT_ALLOW, SCMP_SYS (tgkill), 1,
                             SCMP_A0 (SCMP_CMP_EQ, (scmp_datum_t)getpid ()));
  /* Limits may be read, not set. */
  if (code == 0)
    code = seccomp_rule_add (filter, SCMP_ACT_ALLOW, SCMP_SYS (prlimit64), 2,
                             SCMP_A0 (SCMP_CMP_EQ, 0), SCMP_A2 (SCMP_CMP_EQ, 0));
  for (gsize i = 0; i < G_N_ELEMENTS (fcntl_commands) && code == 0; i++)
    code = seccomp_rule_add (filter, SCMP_ACT_ALLOW, SCMP_SYS (fcntl), 1,
                             SCMP_A1 (SCMP_CMP_EQ, (scmp_datum_t)fcntl_commands[i]));
  return code;
}

/* A thread of this process: it has the filter and Landlock's rules of the one that starts it. */
static int
add_threads (scmp_filter_ctx filter)
{
  const scmp_datum_t shared = CLONE_THREAD | CLONE_VM | CLONE_SIGHAND | CLONE_FILES | CLONE_FS;
  const scmp_datum_t spaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                              CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  int code = seccomp_rule_add (filter, SCMP_ACT_ALLOW, SCMP_SYS (clone), 1,
                               SCMP_A0 (SCMP_CMP_MASKED_EQ, shared | spaces, shared));

  /* Both belong to the start of a thread: libc gives up when the second is refused. */
  if (code == 0)
    code = seccomp_rule_add (filter, SCMP_ACT_ALLOW, SCMP_SYS (set_robust_list), 0);
  if (code == 0)
    code = seccomp_rule_add (filter, SCMP_ACT_ALLOW, SCMP_SYS (rseq), 0);
  return code;
}

/* Newer calls that the C library tries first must look missing, so that it falls back. */
static int
add_missing (scmp_filter_ctx filter)
{
  int code = seccomp_rule_add (filter, SCMP_ACT_ERRNO (ENOSYS), SCMP_SYS (clone3), 0);

  if (code == 0)
    code = seccomp_rule_add (filter, SCMP_ACT_ERRNO (ENOSYS), SCMP_SYS (statx), 0);
  return code;
}

static int
confine_by_seccomp (gboolean may_thread)
{
  scmp_filter_ctx filter = seccomp_init (SCMP_ACT_ERRNO (EPERM));
  int code;

  if (filter == NULL)
    return ENOMEM;
  code = add_plain (filter);
  if (code == 0)
    code = add_checked (filter);
  if (code == 0)
    code = add_missing (filter);
  if (code == 0 && may_thread)
    code = add_threads (filter);
  if (code == 0)
    code = seccomp_load (filter);
  seccomp_release (filter);
  return -code;
}

int
ks_sandbox_confine (const GPtrArray *paths, gboolean may_thread, KsWireStep *out_step)
{
  int code;

  *out_step = KS_WIRE_STEP_PRIVILEGES;
  if (prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return errno;
  *out_step = KS_WIRE_STEP_LANDLOCK;
  code = confine_by_landlock (paths);
  if (code != 0)
    return code;
  *out_step = KS_WIRE_STEP_SECCOMP;
  code = confine_by_seccomp (may_thread);
  if (code != 0)
    return code;
  /* A filter that was taken but does not filter is a refused one. */
  return socket (AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM ? 0 : ENOSYS;
}
