CREATE TABLE accounts (email TEXT, motto TEXT, phrase TEXT, password_hash TEXT);
