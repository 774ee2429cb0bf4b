CREATE TABLE mix_rows (id INTEGER, note TEXT);
