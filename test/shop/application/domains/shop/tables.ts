import type { Db } from 'heddle'
import { kysely } from 'heddle/kysely'
import type { Tables } from '../db-types.ts'

/** The tables of this domain: those of others are not even in the types. */
type Own = Pick<Tables, 'products' | 'images' | 'cart_lines' | 'orders' | 'order_lines'>

/** Kysely's query builder on them. */
export const shopTables = (db: Db) => kysely<Own>(db)
