INSERT INTO products (id, name, price_cents, available) VALUES
  ('table-loom', 'Table loom', 19900, 3),
  ('floor-loom', 'Floor loom', 149000, 1),
  ('shuttle', 'Shuttle', 900, 40),
  ('reed', 'Reed', 2500, 12)
ON CONFLICT DO NOTHING;
