/** Increased with every change: a file of another version is written anew, since nothing in it is needed. */
export const TABLES_VERSION = 4

export const TABLES = `
CREATE TABLE run (
  id       TEXT PRIMARY KEY,
  replica  TEXT NOT NULL,
  seen_ms  REAL NOT NULL
);
CREATE TABLE request (
  id       TEXT PRIMARY KEY,
  client_id TEXT,
  kind     TEXT NOT NULL,
  run      TEXT NOT NULL,
  at_ms    REAL NOT NULL,
  ms       REAL,
  status   INTEGER,
  method   TEXT NOT NULL,
  path     TEXT NOT NULL,
  route    TEXT NOT NULL,
  plugin   TEXT NOT NULL,
  lane     INTEGER,
  failed   INTEGER NOT NULL DEFAULT 0,
  error    TEXT,
  user     TEXT
);
CREATE INDEX request_client ON request (client_id, at_ms) WHERE client_id IS NOT NULL;
CREATE INDEX request_at ON request (at_ms);
CREATE INDEX request_user ON request (user, at_ms) WHERE user IS NOT NULL;
CREATE INDEX request_failed ON request (at_ms) WHERE failed = 1;
CREATE TABLE part (
  id         INTEGER PRIMARY KEY,
  request_id TEXT,
  event_id   TEXT,
  at_ms      REAL NOT NULL,
  json       TEXT NOT NULL,
  run        TEXT NOT NULL,
  trace_id   TEXT
);
CREATE INDEX part_request ON part (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX part_event ON part (event_id) WHERE event_id IS NOT NULL;
CREATE INDEX part_trace ON part (trace_id) WHERE trace_id IS NOT NULL;
CREATE INDEX part_at ON part (at_ms);
CREATE TABLE published (
  event_id TEXT PRIMARY KEY,
  part_id  INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX published_part ON published (part_id);
`
