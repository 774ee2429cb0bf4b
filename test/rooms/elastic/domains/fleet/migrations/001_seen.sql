CREATE TABLE fleet_seen (
  seq BIGSERIAL PRIMARY KEY,
  event_id TEXT NOT NULL,
  event TEXT NOT NULL,
  replica TEXT NOT NULL,
  parent_id TEXT,
  request_id TEXT
);
