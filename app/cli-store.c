/* cli-store.c - see cli-store.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-store.h"

typedef struct {
  CliStoreFunc func;
  gpointer data;
} Call;

static gpointer
run_call (KsStore *store, gpointer data, GError **error)
{
  Call *call = data;

  return GINT_TO_POINTER (call->func (store, call->data, error));
}

int
cli_run_on_store (gboolean writes, CliStoreFunc func, gpointer data)
{
  g_autoptr (KsSessionService) service = ks_session_service_new (NULL);
  g_autoptr (GError) error = NULL;
  Call call = {func, data};

  if (!ks_session_service_open (service, &error))
    return cli_fail (error);
  if (writes && ks_session_service_get_read_only_reason (service) != NULL) {
    cli_print_error ("%s", ks_session_service_get_read_only_reason (service));
    return CLI_FAILED;
  }
  if (ks_session_service_call (service, run_call, &call, &error) == NULL)
    return error != NULL ? cli_fail (error) : CLI_FAILED;
  return CLI_OK;
}

char *
cli_format_time (gint64 time_us)
{
  g_autoptr (GDateTime) utc = g_date_time_new_from_unix_utc (time_us / G_USEC_PER_SEC);
  g_autoptr (GDateTime) local = utc != NULL ? g_date_time_to_local (utc) : NULL;

  return local != NULL ? g_date_time_format (local, "%Y-%m-%d %H:%M") : g_strdup ("-");
}

char *
cli_format_time_iso (gint64 time_us)
{
  g_autoptr (GDateTime) seconds = g_date_time_new_from_unix_utc (time_us / G_USEC_PER_SEC);
  g_autoptr (GDateTime) time =
      seconds != NULL ? g_date_time_add (seconds, time_us % G_USEC_PER_SEC) : NULL;

  return time != NULL ? g_date_time_format_iso8601 (time) : g_strdup ("");
}

char *
cli_format_n (guint64 n, const char *one, const char *many)
{
  g_autofree char *count = cli_format_count (n);

  return g_strdup_printf ("%s %s", count, n == 1 ? one : many);
}

char *
cli_dup_title (KsSession *session, guint n_chars)
{
  const char *title = ks_session_get_title (session);
  g_autofree char *printable = cli_dup_printable (title != NULL ? title : "");

  g_strstrip (printable);
  if (printable[0] == '\0')
    return g_strdup ("(no title)");
  if (g_utf8_strlen (printable, -1) > (glong)n_chars) {
    g_autofree char *cut = g_utf8_substring (printable, 0, (glong)n_chars - 1);

    return g_strconcat (cut, "…", NULL);
  }
  return g_steal_pointer (&printable);
}

cJSON *
cli_make_session_json (KsSession *session)
{
  g_autofree char *created = cli_format_time_iso (ks_session_get_created_us (session));
  g_autofree char *updated = cli_format_time_iso (ks_session_get_updated_us (session));
  const char *title = ks_session_get_title (session);
  cJSON *json = cJSON_CreateObject ();

  cJSON_AddNumberToObject (json, "id", (double)ks_session_get_id (session));
  cJSON_AddStringToObject (json, "title", title != NULL ? title : "");
  cJSON_AddStringToObject (json, "created", created);
  cJSON_AddStringToObject (json, "updated", updated);
  cJSON_AddNumberToObject (json, "messages", ks_session_get_n_messages (session));
  if (ks_session_get_snippet (session) != NULL)
    cJSON_AddStringToObject (json, "snippet", ks_session_get_snippet (session));
  return json;
}
