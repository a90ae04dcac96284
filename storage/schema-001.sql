-- schema-001.sql - the first schema; what the columns mean is in docs/formats/schema.md.
-- SPDX-License-Identifier: GPL-3.0-or-later
CREATE TABLE session (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  title TEXT NOT NULL,
  created_us INTEGER NOT NULL,
  updated_us INTEGER NOT NULL,
  deleted_us INTEGER,
  leaf INTEGER NOT NULL DEFAULT 0,
  n_messages INTEGER NOT NULL DEFAULT 0,
  model TEXT,
  system_prompt TEXT,
  policy TEXT,
  budget_bytes INTEGER,
  kv_budget_bytes INTEGER,
  temperature REAL,
  top_p REAL,
  min_p REAL,
  repeat_penalty REAL,
  top_k INTEGER,
  seed INTEGER,
  max_tokens INTEGER
);
CREATE INDEX session_updated ON session (updated_us, id) WHERE deleted_us IS NULL;

CREATE TABLE message (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  -- No cascade: a long chain would exceed the depth of triggers; messages go with their session.
  parent INTEGER REFERENCES message (id) DEFERRABLE INITIALLY DEFERRED,
  active_child INTEGER NOT NULL DEFAULT 0,
  role INTEGER NOT NULL CHECK (role BETWEEN 0 AND 2),
  state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 5),
  text TEXT NOT NULL,
  error TEXT,
  n_tokens INTEGER NOT NULL DEFAULT 0,
  created_us INTEGER NOT NULL
);
CREATE INDEX message_siblings ON message (session, parent, id);
CREATE INDEX message_parent ON message (parent);
CREATE INDEX message_streaming ON message (session) WHERE state = 1;

CREATE TABLE attachment (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  message INTEGER NOT NULL REFERENCES message (id) ON DELETE CASCADE,
  kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 2),
  name TEXT NOT NULL,
  hash TEXT NOT NULL CHECK (length (hash) = 64),
  n_bytes INTEGER NOT NULL,
  text_hash TEXT CHECK (length (text_hash) = 64),
  n_pages INTEGER NOT NULL DEFAULT 0,
  width_px INTEGER NOT NULL DEFAULT 0,
  height_px INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX attachment_message ON attachment (message, id);
CREATE INDEX attachment_hash ON attachment (hash);
CREATE INDEX attachment_text_hash ON attachment (text_hash) WHERE text_hash IS NOT NULL;

CREATE TABLE session_lock (
  session INTEGER PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE,
  pid INTEGER NOT NULL,
  started INTEGER NOT NULL,
  boot TEXT NOT NULL
);

CREATE VIRTUAL TABLE session_fts USING fts5 (title, content = 'session', content_rowid = 'id', tokenize = 'trigram');
CREATE TRIGGER session_fts_insert AFTER INSERT ON session BEGIN
  INSERT INTO session_fts (rowid, title) VALUES (new.id, new.title);
END;
CREATE TRIGGER session_fts_update AFTER UPDATE OF title ON session BEGIN
  INSERT INTO session_fts (session_fts, rowid, title) VALUES ('delete', old.id, old.title);
  INSERT INTO session_fts (rowid, title) VALUES (new.id, new.title);
END;
CREATE TRIGGER session_fts_delete AFTER DELETE ON session BEGIN
  INSERT INTO session_fts (session_fts, rowid, title) VALUES ('delete', old.id, old.title);
END;

-- A message is indexed when its answer has ended: state 1 is streaming.
CREATE VIRTUAL TABLE message_fts USING fts5 (text, content = 'message', content_rowid = 'id', tokenize = 'trigram');
CREATE TRIGGER message_fts_insert AFTER INSERT ON message WHEN new.state <> 1 BEGIN
  INSERT INTO message_fts (rowid, text) VALUES (new.id, new.text);
END;
-- One trigger, since the old text has to leave the index before the new one enters it.
CREATE TRIGGER message_fts_update AFTER UPDATE OF text, state ON message BEGIN
  INSERT INTO message_fts (message_fts, rowid, text) SELECT 'delete', old.id, old.text WHERE old.state <> 1;
  INSERT INTO message_fts (rowid, text) SELECT new.id, new.text WHERE new.state <> 1;
END;
CREATE TRIGGER message_fts_delete AFTER DELETE ON message WHEN old.state <> 1 BEGIN
  INSERT INTO message_fts (message_fts, rowid, text) VALUES ('delete', old.id, old.text);
END;
