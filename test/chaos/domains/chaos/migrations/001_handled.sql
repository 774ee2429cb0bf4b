-- One row for each event that was handled, however often it came.
CREATE TABLE chaos_handled (
  event_id TEXT PRIMARY KEY,
  event TEXT NOT NULL,
  number INTEGER NOT NULL
);

-- Written in transactions that never end: always empty.
CREATE TABLE chaos_torn (
  number INTEGER NOT NULL
);
