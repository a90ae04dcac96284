-- schema-003.sql - what a user asked to keep in the model's memory: turns and attached files.
-- SPDX-License-Identifier: GPL-3.0-or-later
ALTER TABLE message ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attachment ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
