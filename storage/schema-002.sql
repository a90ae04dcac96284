-- schema-002.sql - attachments of more kinds (video, documents with pictures) and how each is read.
-- SPDX-License-Identifier: GPL-3.0-or-later
-- A check cannot be widened in place: the table is written anew.
CREATE TABLE attachment_new (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  message INTEGER NOT NULL REFERENCES message (id) ON DELETE CASCADE,
  kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 4),
  name TEXT NOT NULL,
  hash TEXT NOT NULL CHECK (length (hash) = 64),
  n_bytes INTEGER NOT NULL,
  text_hash TEXT CHECK (length (text_hash) = 64),
  n_pages INTEGER NOT NULL DEFAULT 0,
  width_px INTEGER NOT NULL DEFAULT 0,
  height_px INTEGER NOT NULL DEFAULT 0,
  reading TEXT,
  duration_us INTEGER NOT NULL DEFAULT 0
);
INSERT INTO attachment_new (id, message, kind, name, hash, n_bytes, text_hash, n_pages, width_px, height_px)
  SELECT id, message, kind, name, hash, n_bytes, text_hash, n_pages, width_px, height_px FROM attachment;
DROP TABLE attachment;
ALTER TABLE attachment_new RENAME TO attachment;
CREATE INDEX attachment_message ON attachment (message, id);
CREATE INDEX attachment_hash ON attachment (hash);
CREATE INDEX attachment_text_hash ON attachment (text_hash) WHERE text_hash IS NOT NULL;
