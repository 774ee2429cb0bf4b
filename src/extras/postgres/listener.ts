// Notifications of the server.
import pg from 'pg'
import { type Access, connect } from './connection.ts'

/** Pause before a lost connection is opened again, milliseconds. */
const RETRY_MS = 1000

export interface Subscription {
  /** A name without special characters. */
  channel: string
  /** Gets the payload of each notification; an empty one when the connection is there again. */
  told: (payload: string) => void
}

/** Listens for notifications, on a connection of its own, which is opened again whenever it is lost. */
export class Listener {
  readonly #access: Access
  readonly #subscription: Subscription
  #client: pg.Client | null = null
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(access: Access, subscription: Subscription) {
    this.#access = access
    this.#subscription = subscription
  }

  /** Begins to open the connection. */
  open(): void {
    const { channel, told } = this.#subscription
    const client = new pg.Client(this.#access.config)
    this.#client = client
    client.on('error', () => this.#lost(client))
    client.on('end', () => this.#lost(client))
    client.on('notification', ({ payload }) => told(payload ?? ''))
    connect(client, this.#access)
      .then(() => client.query(`LISTEN ${channel}`))
      .then(
        () => told(''),
        () => this.#lost(client),
      )
  }

  #lost(client: pg.Client): void {
    if (this.#client !== client || this.#isClosed) return
    this.#client = null
    client.connection.stream.destroy()
    this.#timer = setTimeout(() => this.open(), RETRY_MS).unref()
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#client?.end().catch(() => {}) // It is not used any more in any case.
  }
}
