CREATE TABLE products (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  price_cents INTEGER NOT NULL CHECK (price_cents > 0),
  available INTEGER NOT NULL CHECK (available >= 0)
);
CREATE TABLE images (
  product_id TEXT PRIMARY KEY REFERENCES products (id),
  type TEXT NOT NULL,
  content BYTEA NOT NULL
);
