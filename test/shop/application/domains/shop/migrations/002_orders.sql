CREATE TABLE cart_lines (
  customer_id TEXT NOT NULL,
  product_id TEXT NOT NULL REFERENCES products (id),
  quantity INTEGER NOT NULL CHECK (quantity > 0),
  touched_at TEXT NOT NULL,
  PRIMARY KEY (customer_id, product_id)
);
CREATE TABLE orders (
  id TEXT PRIMARY KEY,
  customer_id TEXT NOT NULL,
  total_cents INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('placed', 'paid')),
  placed_at TEXT NOT NULL
);
CREATE TABLE order_lines (
  order_id TEXT NOT NULL REFERENCES orders (id),
  product_id TEXT NOT NULL REFERENCES products (id),
  quantity INTEGER NOT NULL,
  price_cents INTEGER NOT NULL,
  PRIMARY KEY (order_id, product_id)
);
