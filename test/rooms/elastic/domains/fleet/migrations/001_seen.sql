CREATE TABLE fleet_orders (
  id TEXT PRIMARY KEY,
  number INTEGER NOT NULL
);

CREATE TABLE fleet_seen (
  seq BIGSERIAL PRIMARY KEY,
  event_id TEXT NOT NULL,
  event TEXT NOT NULL,
  number INTEGER NOT NULL,
  replica TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  parent_id TEXT,
  request_id TEXT
);
