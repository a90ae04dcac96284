/* ks-worker-wire.h - the messages between the program and its decoder worker.
 * One message is one packet of a SOCK_SEQPACKET pair, little-endian, at most KS_WIRE_MAX_BYTES;
 * large results travel in sealed memfds beside it.  Parsing trusts neither side: every number has a
 * range, and a packet is accepted only if building it again gives the same bytes.  No text for
 * users is on the wire: faults and warnings are numbers, sentences are made by the program.
 * Source: docs/formats/worker.md.  Threads: pure functions, any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-sampling.h"

#include <glib.h>

G_BEGIN_DECLS

#define KS_WIRE_MAX_BYTES 1024u
#define KS_WIRE_MAX_PASSWORD 512u
#define KS_WIRE_MAX_SIDE_PX 8192u /* of a picture that is handed over */
#define KS_WIRE_MAX_PAGES 1000000u
#define KS_WIRE_MAX_TOTAL_BYTES (G_GUINT64_CONSTANT (1) << 30) /* of all pictures of a request */
#define KS_WIRE_MAX_PART_BYTES (256u << 20)
#define KS_WIRE_VARIANT_JPEG_12 12u /* bits a colour */
#define KS_WIRE_SOCKET_FD 3         /* the worker's end */
#define KS_WIRE_SCAN_HEAD 16u /* bytes before the rows of SCAN_TEXT: "KSPX", width, height, 0 */

typedef enum {
  KS_WIRE_LOAD = 1,
  KS_WIRE_RENDER,   /* a page of a PDF as pixels, or a picture of a document as its bytes */
  KS_WIRE_FRAMES,   /* of a video */
  KS_WIRE_CAPTURE,  /* the file is a camera */
  KS_WIRE_SCAN_TEXT /* the file is pixels: the text in them */
} KsWireOperation;

typedef struct {
  KsWireOperation operation;
  guint32 page; /* RENDER */
  guint32 max_side_px;
  guint32 cpu_s;                           /* processor time, after it the kernel ends the worker */
  guint64 memory_bytes;                    /* address space */
  KsMediaSampling sampling;                /* FRAMES, as ks_sampling_clamp() makes it */
  char password[KS_WIRE_MAX_PASSWORD + 1]; /* SCAN_TEXT: the languages, "deu+eng" */
} KsWireRequest;

typedef enum {
  KS_WIRE_FAULT_READ = 1,  /* a = errno */
  KS_WIRE_FAULT_UNKNOWN,   /* none of the known kinds */
  KS_WIRE_FAULT_ENCODING,  /* text that cannot be converted */
  KS_WIRE_FAULT_DAMAGED,   /* a = KsWireWhat */
  KS_WIRE_FAULT_PASSWORD,  /* encrypted, none was given */
  KS_WIRE_FAULT_WRONG,     /* encrypted, not by this password */
  KS_WIRE_FAULT_CIPHER,    /* encrypted in a way that is not known */
  KS_WIRE_FAULT_PIXELS,    /* a, b = width and height */
  KS_WIRE_FAULT_LONG_TEXT, /* over KS_MEDIA_MAX_TEXT_BYTES */
  KS_WIRE_FAULT_PAGES,     /* a = pages */
  KS_WIRE_FAULT_MEMORY,
  KS_WIRE_FAULT_EMPTY,    /* a = KsWireWhat */
  KS_WIRE_FAULT_NO_PAGE,  /* a = page that was asked for, b = pages */
  KS_WIRE_FAULT_NO_PAGES, /* RENDER of something that is no document */
  KS_WIRE_FAULT_VARIANT,  /* a picture of a kind that is known, in a form that is not;
                             a: KS_WIRE_VARIANT_JPEG_12 or 0 */
  KS_WIRE_FAULT_CONFINED, /* the worker could not give up its rights: a = KsWireStep, b = errno */
  KS_WIRE_FAULT_DECODER,  /* a decoder module cannot be loaded: a = KsWireWhat */
  KS_WIRE_FAULT_NO_VIDEO, /* FRAMES of something else, or sound without pictures: a = KsWireWhat */
  KS_WIRE_FAULT_NO_INDEX, /* a video that was never finished */
  KS_WIRE_FAULT_CODEC,    /* a video in a coding that is not known */
  KS_WIRE_FAULT_FRAMES,   /* the frames asked for are over KS_WIRE_MAX_TOTAL_BYTES */
  KS_WIRE_FAULT_CAMERA,   /* a = errno */
  KS_WIRE_FAULT_UNPACKED, /* an archive unpacks to more than a MiB */
  KS_WIRE_FAULT_NO_PICTURE, /* a = picture that was asked for, b = pictures */
  KS_WIRE_FAULT_OLD_OFFICE, /* an Office file in its old form, or an encrypted one */
  KS_WIRE_FAULT_LANGUAGE,   /* SCAN_TEXT: the language data are missing */
  KS_WIRE_FAULT_LAST = KS_WIRE_FAULT_LANGUAGE
} KsWireFault;

typedef enum {
  KS_WIRE_FILE,
  KS_WIRE_PDF,
  KS_WIRE_IMAGE,
  KS_WIRE_TEXT,
  KS_WIRE_VIDEO,    /* sound without pictures as well */
  KS_WIRE_DOCUMENT, /* text with pictures: DOCX, PPTX, ODT, ODP, EPUB, HTML */
  KS_WIRE_SCAN      /* text in pixels */
} KsWireWhat;

typedef enum {
  KS_WIRE_STEP_LIMITS = 1,
  KS_WIRE_STEP_PRIVILEGES,
  KS_WIRE_STEP_LANDLOCK,
  KS_WIRE_STEP_SECCOMP
} KsWireStep;

typedef enum {
  KS_WIRE_WARN_ENDS_EARLY = 1 << 0, /* a picture */
  KS_WIRE_WARN_ANIMATED = 1 << 1,   /* only the first picture was taken */
  KS_WIRE_WARN_REPLACED = 1 << 2,   /* bytes of a text were no characters */
  KS_WIRE_WARN_TEXT_CUT = 1 << 3,   /* a document's text is over the limit */
  KS_WIRE_WARN_PAGES = 1 << 4,      /* some pages could not be read */
  KS_WIRE_WARN_VIDEO_CUT = 1 << 5,  /* a video ends before its time */
  KS_WIRE_WARN_FEWER = 1 << 6,      /* more frames were wished for than may be taken */
  KS_WIRE_WARN_OVER_WHITE = 1 << 7, /* what is see-through was laid over white */
  KS_WIRE_WARN_SEVERAL = 1 << 8,    /* only the first of a file's pictures was taken */
  KS_WIRE_WARN_PARTS = 1 << 9,      /* some parts of a document could not be read */
  KS_WIRE_WARN_MIXED = 1 << 10,     /* a page with text of a PDF holds a picture as well */
  KS_WIRE_WARN_ALL = (1 << 11) - 1
} KsWireWarning;

typedef enum {
  KS_WIRE_PROGRESS = 1,
  KS_WIRE_ANSWER_FAULT,  /* the last one */
  KS_WIRE_ANSWER_TEXT,   /* with a descriptor */
  KS_WIRE_ANSWER_PIXELS, /* with a descriptor */
  KS_WIRE_DONE,          /* the last one */
  KS_WIRE_ANSWER_VIDEO,  /* what a video is, before its frames */
  KS_WIRE_ANSWER_PART    /* with a descriptor: a picture of a document as it lies in it */
} KsWireType;

typedef struct {
  KsWireType type;
  guint32 n_done, n_total;               /* PROGRESS, n_done <= n_total */
  KsWireFault fault;                     /* FAULT */
  guint32 a, b;                          /* FAULT */
  KsWireWhat what;                       /* TEXT: not IMAGE, VIDEO; PIXELS: PDF, IMAGE, VIDEO */
  guint32 warnings;                      /* TEXT, PIXELS, VIDEO: KsWireWarning */
  guint32 n_pages;                       /* TEXT of a PDF */
  guint32 n_pages_without_text;          /* TEXT of a PDF, at most n_pages */
  guint32 n_pictures;                    /* TEXT of a document */
  guint32 confidence, n_left_out;        /* TEXT of a scan: percent; lines that are too doubtful */
  guint64 n_bytes;                       /* TEXT, PART: length; PIXELS: 4 * width_px * height_px */
  char encoding[32];                     /* TEXT of a text file: letters, digits, - _ */
  guint32 width_px, height_px;           /* PIXELS as they are handed over */
  guint32 full_width_px, full_height_px; /* PIXELS before scaling; VIDEO the right way up */
  guint32 index;                         /* PIXELS: which of several, from 0 */
  gint64 time_us;                        /* PIXELS of a video: when it is shown, from 0 */
  gint64 duration_us;                    /* VIDEO, 0 = not known */
  guint32 n_frames;                      /* VIDEO, at least 1 */
  gboolean has_sound;                    /* VIDEO */
} KsWireAnswer;

/* Writes the packet into out[KS_WIRE_MAX_BYTES]; returns its length. */
gsize ks_wire_build_request (const KsWireRequest *request, guint8 *out);
gsize ks_wire_build_answer (const KsWireAnswer *answer, guint8 *out);
/* FALSE for anything that the other side may not send; *out is then not to be used.  n_fd: number
 * of descriptors that came with the packet. */
gboolean ks_wire_parse_request (const guint8 *data, gsize n, guint n_fd, KsWireRequest *out);
gboolean ks_wire_parse_answer (const guint8 *data, gsize n, guint n_fd, KsWireAnswer *out);

/* One packet with a descriptor (-1 = none).  FALSE: errno says why. */
gboolean ks_wire_send (int socket_fd, const guint8 *data, gsize n, int fd);
/* Waits for one packet: its length, 0 at the end, -1 with errno.  *out_fd is the descriptor (close
 * on exec) or -1; *out_n_fd counts what came, cut-off ones as well, but more than one is closed
 * again, so that only n_fd 0 and 1 have to be handled.  data: KS_WIRE_MAX_BYTES. */
gssize ks_wire_receive (int socket_fd, guint8 *data, int *out_fd, guint *out_n_fd);

G_END_DECLS
