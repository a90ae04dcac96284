/* probe-worker.c - a worker that confines itself like the real one and then tries what is
 * forbidden. Answers with a text: one line `name errno` a try, 0 = it was possible.  A file that
 * begins with '+' asks for threads as well. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-loader.h"
#include "media/ks-worker-sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char plain[] = "hello";

void
ks_worker_end (int code)
{
  _exit (code);
}

static void
note (GString *out, const char *name, long result)
{
  g_string_append_printf (out, "%s %d\n", name, result < 0 ? errno : 0);
}

static void
try_files (GString *out, const char *allowed)
{
  note (out, "read-passwd", open ("/etc/passwd", O_RDONLY));
  note (out, "read-proc", open ("/proc/self/environ", O_RDONLY));
  note (out, "list-root", open ("/", O_RDONLY | O_DIRECTORY));
  note (out, "read-allowed", open (allowed, O_RDONLY));
  note (out, "write-allowed", open (allowed, O_WRONLY));
  note (out, "write-null", open ("/dev/null", O_RDWR));
  note (out, "append", open (allowed, O_RDONLY | O_APPEND));
  note (out, "create", open ("/tmp/keepsake-probe", O_RDONLY | O_CREAT, 0600));
  note (out, "temporary", open ("/tmp", O_TMPFILE | O_RDWR, 0600));
  note (out, "openat2", syscall (SYS_openat2, AT_FDCWD, allowed, NULL, 0));
  note (out, "unlink", unlink (allowed));
  note (out, "rename", rename (allowed, "/tmp/keepsake-probe"));
  note (out, "mkdir", mkdir ("/tmp/keepsake-probe", 0700));
  note (out, "chmod", chmod (allowed, 0777));
  note (out, "symlink", symlink ("/etc/passwd", "/tmp/keepsake-probe"));
  note (out, "truncate", truncate (allowed, 0));
  note (out, "write-request", write (4, plain, 1));
}

static void *
run_thread (void *data)
{
  /* As confined as the first one. */
  *(int *)data = open ("/dev/null", O_RDWR) < 0 ? errno : 0;
  return NULL;
}

static void
try_thread (GString *out)
{
  int code, inside = 0;
  pthread_t thread;

  code = pthread_create (&thread, NULL, run_thread, &inside);
  if (code == 0)
    pthread_join (thread, NULL);
  g_string_append_printf (out, "thread %d\nin-thread %d\n", code, inside);
}

static void
try_processes (GString *out)
{
  char *const args[] = {(char *)"true", NULL}, *const env[] = {NULL};

  note (out, "execve", execve ("/bin/true", args, env));
  note (out, "execveat", syscall (SYS_execveat, AT_FDCWD, "/bin/true", args, env, 0));
  note (out, "fork", syscall (SYS_clone, SIGCHLD, 0, 0, 0, 0));
  note (out, "ptrace", ptrace (PTRACE_TRACEME, 0, NULL, NULL));
  note (out, "kill-parent", kill (getppid (), 0));
  note (out, "kill-group", kill (0, 0));
  note (out, "tgkill-other", syscall (SYS_tgkill, 1, 1, 0));
  note (out, "vm-read", syscall (SYS_process_vm_readv, getpid (), NULL, 0, NULL, 0, 0));
  note (out, "prctl", prctl (PR_SET_DUMPABLE, 1));
  note (out, "setrlimit", setrlimit (RLIMIT_CORE, &(struct rlimit){0, 0}));
  note (out, "unshare", syscall (SYS_unshare, 0));
  note (out, "setuid", syscall (SYS_setuid, 0));
}

static void
try_machine (GString *out)
{
  void *page = mmap (NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  note (out, "socket-inet", socket (AF_INET, SOCK_STREAM, 0));
  note (out, "socket-unix", socket (AF_UNIX, SOCK_STREAM, 0));
  note (out, "connect", connect (KS_WIRE_SOCKET_FD, NULL, 0));
  note (out, "send-elsewhere", sendmsg (0, &(struct msghdr){0}, 0));
  note (out, "io-uring", syscall (SYS_io_uring_setup, 1, NULL));
  note (out, "bpf", syscall (SYS_bpf, 0, NULL, 0));
  note (out, "keyctl", syscall (SYS_keyctl, 0, 0, 0, 0, 0));
  note (out, "ioctl", syscall (SYS_ioctl, 0, 0x5412, "x")); /* TIOCSTI: types into a terminal */
  note (out, "mmap-exec",
        mmap (NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
            ? -1
            : 0);
  note (out, "mprotect-exec", mprotect (page, 4096, PROT_READ | PROT_EXEC));
  note (out, "memory", page == MAP_FAILED ? -1 : 0);
  note (out, "landlock", syscall (SYS_landlock_create_ruleset, NULL, 0, 1));
}

static void
note_limits (GString *out, long landlock)
{
  static const int limits[] = {RLIMIT_CORE, RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_CPU};
  static const char *const names[] = {"core", "descriptors", "address", "cpu"};
  struct rlimit limit;

  for (guint i = 0; i < G_N_ELEMENTS (limits); i++)
    if (getrlimit (limits[i], &limit) == 0)
      g_string_append_printf (out, "limit-%s %" G_GUINT64_FORMAT "\n", names[i],
                              (guint64)limit.rlim_cur);
  g_string_append_printf (out, "kernel-has-landlock %d\n", landlock >= 1);
}

int
main (void)
{
  g_autoptr (GPtrArray) paths = g_ptr_array_new ();
  g_autoptr (GString) out = g_string_new (NULL);
  char allowed[256] = "";
  const char *path;
  gboolean may_thread;
  g_autofree char *folder = NULL;
  guint8 data[KS_WIRE_MAX_BYTES];
  KsWireAnswer facts = {.what = KS_WIRE_TEXT, .encoding = "UTF-8"};
  KsWireRequest request;
  KsWireStep step;
  guint n_fd;
  int fd;
  gssize n = ks_wire_receive (KS_WIRE_SOCKET_FD, data, &fd, &n_fd);
  long landlock = syscall (SYS_landlock_create_ruleset, NULL, 0, 1);

  if (n <= 0 || !ks_wire_parse_request (data, (gsize)n, n_fd, &request) || fd != 4 ||
      pread (fd, allowed, sizeof allowed - 1, 0) < 0)
    return 8;
  may_thread = allowed[0] == '+';
  path = allowed + may_thread;
  folder = g_path_get_dirname (path);
  g_ptr_array_add (paths, folder);
  if (ks_sandbox_limit (&request) != 0 || ks_sandbox_confine (paths, may_thread, &step) != 0)
    return 9;
  try_files (out, path);
  try_thread (out);
  try_processes (out);
  try_machine (out);
  note_limits (out, landlock);
  facts.n_bytes = out->len;
  ks_answer_text (&facts, out->str);
  ks_answer_done ();
}
