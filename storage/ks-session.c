/* ks-session.c - see ks-session.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-session.h"

struct _KsSession {
  GObject parent_instance;
  gint64 id, created_us, updated_us;
  char *title, *snippet;
  guint n_messages;
};

G_DEFINE_FINAL_TYPE (KsSession, ks_session, G_TYPE_OBJECT)

enum {
  PROP_0,
  PROP_ID,
  PROP_TITLE,
  PROP_CREATED_US,
  PROP_UPDATED_US,
  PROP_N_MESSAGES,
  PROP_SNIPPET,
  N_PROPS
};

static GParamSpec *properties[N_PROPS];

KsSessionSettings *
ks_session_settings_new (void)
{
  KsSessionSettings *settings = g_new0 (KsSessionSettings, 1);

  settings->budget_bytes = settings->kv_budget_bytes = -1;
  settings->temperature = settings->top_p = settings->min_p = settings->repeat_penalty = -1;
  settings->top_k = settings->max_tokens = -1;
  settings->seed = -1;
  return settings;
}

KsSessionSettings *
ks_session_settings_copy (const KsSessionSettings *settings)
{
  KsSessionSettings *copy;

  g_return_val_if_fail (settings != NULL, NULL);
  copy = g_memdup2 (settings, sizeof *settings);
  copy->model = g_strdup (settings->model);
  copy->system_prompt = g_strdup (settings->system_prompt);
  copy->policy = g_strdup (settings->policy);
  return copy;
}

void
ks_session_settings_free (KsSessionSettings *settings)
{
  if (settings == NULL)
    return;
  g_free (settings->model);
  g_free (settings->system_prompt);
  g_free (settings->policy);
  g_free (settings);
}

static void
ks_session_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  KsSession *self = KS_SESSION (object);

  switch (id) {
  case PROP_ID:
    g_value_set_int64 (value, self->id);
    break;
  case PROP_TITLE:
    g_value_set_string (value, self->title);
    break;
  case PROP_CREATED_US:
    g_value_set_int64 (value, self->created_us);
    break;
  case PROP_UPDATED_US:
    g_value_set_int64 (value, self->updated_us);
    break;
  case PROP_N_MESSAGES:
    g_value_set_uint (value, self->n_messages);
    break;
  case PROP_SNIPPET:
    g_value_set_string (value, self->snippet);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}

static void
ks_session_set_property (GObject *object, guint id, const GValue *value, GParamSpec *pspec)
{
  KsSession *self = KS_SESSION (object);

  switch (id) {
  case PROP_TITLE:
    ks_session_set_title (self, g_value_get_string (value));
    break;
  case PROP_UPDATED_US:
    ks_session_set_updated_us (self, g_value_get_int64 (value));
    break;
  case PROP_N_MESSAGES:
    ks_session_set_n_messages (self, g_value_get_uint (value));
    break;
  case PROP_SNIPPET:
    ks_session_set_snippet (self, g_value_get_string (value));
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}

static void
ks_session_finalize (GObject *object)
{
  KsSession *self = KS_SESSION (object);

  g_free (self->title);
  g_free (self->snippet);
  G_OBJECT_CLASS (ks_session_parent_class)->finalize (object);
}

static void
ks_session_class_init (KsSessionClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  const GParamFlags read = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
  const GParamFlags write = G_PARAM_READWRITE | G_PARAM_EXPLICIT_NOTIFY | G_PARAM_STATIC_STRINGS;

  object_class->get_property = ks_session_get_property;
  object_class->set_property = ks_session_set_property;
  object_class->finalize = ks_session_finalize;
  properties[PROP_ID] = g_param_spec_int64 ("id", NULL, NULL, 0, G_MAXINT64, 0, read);
  properties[PROP_TITLE] = g_param_spec_string ("title", NULL, NULL, "", write);
  properties[PROP_CREATED_US] =
      g_param_spec_int64 ("created-us", NULL, NULL, 0, G_MAXINT64, 0, read);
  properties[PROP_UPDATED_US] =
      g_param_spec_int64 ("updated-us", NULL, NULL, 0, G_MAXINT64, 0, write);
  properties[PROP_N_MESSAGES] =
      g_param_spec_uint ("n-messages", NULL, NULL, 0, G_MAXUINT, 0, write);
  properties[PROP_SNIPPET] = g_param_spec_string ("snippet", NULL, NULL, NULL, write);
  g_object_class_install_properties (object_class, N_PROPS, properties);
}

static void
ks_session_init (KsSession *self)
{
}

KsSession *
ks_session_new (gint64 id, const char *title, gint64 created_us, gint64 updated_us,
                guint n_messages)
{
  KsSession *self = g_object_new (KS_TYPE_SESSION, NULL);

  self->id = id;
  self->title = g_strdup (title != NULL ? title : "");
  self->created_us = created_us;
  self->updated_us = updated_us;
  self->n_messages = n_messages;
  return self;
}

gint64
ks_session_get_id (KsSession *self)
{
  g_return_val_if_fail (KS_IS_SESSION (self), 0);
  return self->id;
}

const char *
ks_session_get_title (KsSession *self)
{
  g_return_val_if_fail (KS_IS_SESSION (self), NULL);
  return self->title;
}

void
ks_session_set_title (KsSession *self, const char *title)
{
  g_return_if_fail (KS_IS_SESSION (self));
  if (g_strcmp0 (self->title, title) == 0)
    return;
  g_free (self->title);
  self->title = g_strdup (title != NULL ? title : "");
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_TITLE]);
}

gint64
ks_session_get_created_us (KsSession *self)
{
  g_return_val_if_fail (KS_IS_SESSION (self), 0);
  return self->created_us;
}

gint64
ks_session_get_updated_us (KsSession *self)
{
  g_return_val_if_fail (KS_IS_SESSION (self), 0);
  return self->updated_us;
}

void
ks_session_set_updated_us (KsSession *self, gint64 updated_us)
{
  g_return_if_fail (KS_IS_SESSION (self));
  if (self->updated_us == updated_us)
    return;
  self->updated_us = updated_us;
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_UPDATED_US]);
}

guint
ks_session_get_n_messages (KsSession *self)
{
  g_return_val_if_fail (KS_IS_SESSION (self), 0);
  return self->n_messages;
}

void
ks_session_set_n_messages (KsSession *self, guint n_messages)
{
  g_return_if_fail (KS_IS_SESSION (self));
  if (self->n_messages == n_messages)
    return;
  self->n_messages = n_messages;
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_N_MESSAGES]);
}

const char *
ks_session_get_snippet (KsSession *self)
{
  g_return_val_if_fail (KS_IS_SESSION (self), NULL);
  return self->snippet;
}

void
ks_session_set_snippet (KsSession *self, const char *snippet)
{
  g_return_if_fail (KS_IS_SESSION (self));
  if (g_strcmp0 (self->snippet, snippet) == 0)
    return;
  g_free (self->snippet);
  self->snippet = g_strdup (snippet);
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_SNIPPET]);
}
