CREATE TABLE effects (event_id TEXT NOT NULL, process TEXT NOT NULL);
