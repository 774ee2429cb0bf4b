-- Runs unchanged on SQLite and PostgreSQL: ids are made by the application, times are ISO 8601 UTC, which sorts as text.
CREATE TABLE users (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT NOT NULL UNIQUE CHECK (email = lower(email)),
  password_hash TEXT NOT NULL,
  created_at TEXT NOT NULL,
  welcomed_at TEXT
);

CREATE INDEX users_by_created_at ON users (created_at);
