CREATE TABLE bench_items (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  quantity INTEGER NOT NULL,
  note TEXT
);
