CREATE TABLE mails (
  order_id TEXT PRIMARY KEY,
  attempts INTEGER NOT NULL,
  sent_at TEXT NOT NULL
);
