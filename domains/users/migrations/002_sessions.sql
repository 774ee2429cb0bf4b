-- A session is a family of refresh tokens, of which the last one alone is good: here is the hash of its secret. `access` names the access tokens that came with them.
CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  secret_hash TEXT NOT NULL,
  access TEXT NOT NULL,
  expires_at TEXT NOT NULL
);

CREATE INDEX sessions_by_user_id ON sessions (user_id);
