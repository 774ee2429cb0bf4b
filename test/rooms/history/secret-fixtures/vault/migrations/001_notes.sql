CREATE TABLE notes (id TEXT, note TEXT);
