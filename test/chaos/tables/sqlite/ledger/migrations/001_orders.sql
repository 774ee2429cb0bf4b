-- `number` grows with time among the orders of one key.
CREATE TABLE placed (
  number INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  event_id TEXT NOT NULL
);

-- One row for each time that an event was handled, in that order.
CREATE TABLE handled (
  position INTEGER PRIMARY KEY,
  event_id TEXT NOT NULL,
  event TEXT NOT NULL,
  number INTEGER NOT NULL,
  key TEXT NOT NULL,
  parent_id TEXT,
  request_id TEXT,
  child_id TEXT
);

-- One row for each time that an order was billed.
CREATE TABLE billed (
  event_id TEXT NOT NULL,
  number INTEGER NOT NULL
);

-- Written in transactions that never end: always empty.
CREATE TABLE torn (
  id TEXT NOT NULL
);
