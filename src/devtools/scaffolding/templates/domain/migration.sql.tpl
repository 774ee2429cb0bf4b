-- heddle: draft
-- npm run dev leaves it alone until the line above is removed; a start applies it as it is.
-- Runs unchanged on SQLite and PostgreSQL: ids are made by the application, times are ISO 8601 UTC, which sorts as text.
CREATE TABLE {{table}} (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  created_at TEXT NOT NULL
);
