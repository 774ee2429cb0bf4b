import type { DbError } from '../../core/errors/db-error.ts'
import type { Connection } from './connection.ts'

/** Somebody who waits for a connection. */
export interface Waiter {
  /** By `performance.now()`. All wait equally long, so that the first in line is the first whose time is up. */
  readonly deadlineMs: number
  grant(connection: Connection): void
  fail(error: DbError): void
}

interface Place {
  readonly waiter: Waiter
  next: Place | null
}

/** First come, first served; every step takes the same time however long the line is. */
export class WaitingLine {
  #first: Place | null = null
  #last: Place | null = null
  #length = 0

  get length(): number {
    return this.#length
  }

  get first(): Waiter | null {
    return this.#first?.waiter ?? null
  }

  push(waiter: Waiter): void {
    const place: Place = { waiter, next: null }
    if (this.#last === null) this.#first = place
    else this.#last.next = place
    this.#last = place
    this.#length++
  }

  shift(): Waiter | null {
    const place = this.#first
    if (place === null) return null
    this.#first = place.next
    if (this.#first === null) this.#last = null
    this.#length--
    return place.waiter
  }
}
