DROP TABLE order_lines;
DROP TABLE orders;
DROP TABLE cart_lines;
