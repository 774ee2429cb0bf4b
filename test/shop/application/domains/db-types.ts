// Written by `heddle db types` from the migrations: write it again instead of changing it.

/** A row of `accounts`. */
export interface Accounts {
  id: string
  email: string
  password_hash: string
  role: string
  created_at: string
}

export interface AccountsTable {
  id: string
  email: string
  password_hash: string
  role: string
  created_at: string
}

/** A row of `cart_lines`. */
export interface CartLines {
  customer_id: string
  product_id: string
  quantity: number
  touched_at: string
}

export interface CartLinesTable {
  customer_id: string
  product_id: string
  quantity: number
  touched_at: string
}

/** A row of `images`. */
export interface Images {
  product_id: string
  type: string
  content: Uint8Array
}

export interface ImagesTable {
  product_id: string
  type: string
  content: Uint8Array
}

/** A row of `mails`. */
export interface Mails {
  order_id: string
  attempts: number
  sent_at: string
}

export interface MailsTable {
  order_id: string
  attempts: number
  sent_at: string
}

/** A row of `order_lines`. */
export interface OrderLines {
  order_id: string
  product_id: string
  quantity: number
  price_cents: number
}

export interface OrderLinesTable {
  order_id: string
  product_id: string
  quantity: number
  price_cents: number
}

/** A row of `orders`. */
export interface Orders {
  id: string
  customer_id: string
  total_cents: number
  status: string
  placed_at: string
}

export interface OrdersTable {
  id: string
  customer_id: string
  total_cents: number
  status: string
  placed_at: string
}

/** A row of `products`. */
export interface Products {
  id: string
  name: string
  price_cents: number
  available: number
}

export interface ProductsTable {
  id: string
  name: string
  price_cents: number
  available: number
}

export interface Tables {
  accounts: AccountsTable
  cart_lines: CartLinesTable
  images: ImagesTable
  mails: MailsTable
  order_lines: OrderLinesTable
  orders: OrdersTable
  products: ProductsTable
}
