/* ks-error-text.c - see ks-error-text.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-error-text.h"

#include "app/ks-error-kind.h"

#include <glib/gi18n.h>

#include <string.h>

typedef struct {
  const char *sentence;
  gboolean has_facts; /* the technical text is added */
} KindText;

static const KindText texts[KS_N_ERROR_KIND] = {
    [KS_ERROR_KIND_CANCELLED] = {N_ ("Stopped on request."), FALSE},
    [KS_ERROR_KIND_LOCKED] = {N_ ("Another Keepsake is answering in this session: wait until it is "
                                  "done, or stop it there."),
                              FALSE},
    [KS_ERROR_KIND_DISK_FULL] = {N_ ("There is no space left on the disk: free some, then try "
                                     "again. What was stored before is safe."),
                                 FALSE},
    [KS_ERROR_KIND_READ_ONLY] = {N_ ("The place cannot be written to: choose another one, or have "
                                     "its permissions changed."),
                                 TRUE},
    [KS_ERROR_KIND_STORE_DAMAGED] = {N_ ("Something that was stored is damaged; it was left as it "
                                         "is."),
                                     TRUE},
    [KS_ERROR_KIND_STORE_NEWER] = {N_ ("The sessions were written by a newer Keepsake: update the "
                                       "program. They were left as they are."),
                                   TRUE},
    [KS_ERROR_KIND_NOT_STORED] = {N_ ("This is not stored any more."), TRUE},
    [KS_ERROR_KIND_BUNDLE_FORMAT] = {N_ ("The file holds no session that Keepsake exported, or it "
                                         "is damaged: export it again as JSON."),
                                     TRUE},
    [KS_ERROR_KIND_TOO_LARGE] = {N_ ("This is too large."), TRUE},
    [KS_ERROR_KIND_FILE_DAMAGED] = {N_ ("The file is damaged: get it again from where it came."),
                                    TRUE},
    [KS_ERROR_KIND_FILE_PASSWORD] = {N_ ("The document is locked: enter its password."), FALSE},
    [KS_ERROR_KIND_FILE_WRONG_PASSWORD] = {N_ ("This is not the password of the document: try "
                                               "again."),
                                           FALSE},
    [KS_ERROR_KIND_FILE_EMPTY] = {N_ ("The file is empty: choose another one."), FALSE},
    [KS_ERROR_KIND_FILE_TYPE] = {N_ ("Keepsake cannot read files of this kind: attach PDF, text or "
                                     "a picture."),
                                 TRUE},
    [KS_ERROR_KIND_FILE_MISSING] = {N_ ("The file is not there any more."), TRUE},
    [KS_ERROR_KIND_FILE_FORBIDDEN] = {N_ ("You have no right to use this file or folder."), TRUE},
    [KS_ERROR_KIND_FILE_UNREADABLE] = {N_ ("The file cannot be read."), TRUE},
    [KS_ERROR_KIND_DECODER] = {N_ ("The program part that opens files did not work; the file was "
                                   "not opened."),
                               TRUE},
    [KS_ERROR_KIND_NO_MODEL] = {N_ ("There is no such model: choose one in the preferences, under "
                                    "Model."),
                                FALSE},
    [KS_ERROR_KIND_BUDGET] = {N_ ("The memory target is too small for this: raise it, or choose a "
                                  "smaller model."),
                              TRUE},
    [KS_ERROR_KIND_NO_MEMORY] = {N_ ("The machine has not enough free memory for this: close other "
                                     "programs, lower the memory target, or choose a smaller "
                                     "model."),
                                 TRUE},
    [KS_ERROR_KIND_MODEL_DAMAGED] = {N_ ("The model file is damaged or no model at all: get it "
                                         "again, or choose another one."),
                                     TRUE},
    [KS_ERROR_KIND_MODEL_UNSUPPORTED] = {N_ ("This version of Keepsake cannot run that model: "
                                             "choose another one."),
                                         TRUE},
    [KS_ERROR_KIND_MODEL_UNREADABLE] = {N_ ("The model file cannot be read: is its drive still "
                                            "there?"),
                                        TRUE},
    [KS_ERROR_KIND_DEVICE_LOST] = {N_ ("The device that computes is gone: load the model again."),
                                   TRUE},
};

/* One line of valid text without the full stop; what comes from below may hold names of files. */
static char *
dup_technical (const char *message)
{
  g_autofree char *valid = g_utf8_make_valid (message == NULL ? "" : message, -1);
  gsize n = strlen (g_strstrip (g_strdelimit (valid, "\n\r\t", ' ')));

  if (n > 0 && valid[n - 1] == '.')
    valid[n - 1] = '\0';
  return g_steal_pointer (&valid);
}

/* Technical texts begin in lower case; a name of a file keeps its case. */
static gboolean
begins_with_word (const char *text)
{
  gsize n = strspn (text, "abcdefghijklmnopqrstuvwxyz");

  return n > 0 && text[n] == ' ';
}

static char *
make_sentence (const char *technical)
{
  g_autofree char *text = g_strdup (technical);
  gsize n = strlen (text);

  if (n == 0)
    return g_strdup (_ ("Something went wrong, and no reason was given."));
  if (begins_with_word (text))
    text[0] = g_ascii_toupper (text[0]);
  return g_strconcat (text, strchr ("!?:", text[n - 1]) == NULL ? "." : "", NULL);
}

char *
ks_error_text_dup (const GError *error)
{
  const KindText *text = &texts[ks_error_get_kind (error)];
  g_autofree char *technical = dup_technical (error == NULL ? NULL : error->message);

  if (text->sentence == NULL)
    return make_sentence (technical);
  if (!text->has_facts || technical[0] == '\0')
    return g_strdup (_ (text->sentence));
  /* Translators: a sentence, and the technical (English) text with names and sizes. */
  return g_strdup_printf (_ ("%s (%s)"), _ (text->sentence), technical);
}
