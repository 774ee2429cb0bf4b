// Notifications of the server.
import pg from 'pg'
import { type Access, connect } from './connection.ts'

/** Pause before a lost connection is opened again, milliseconds. */
const RETRY_MS = 1000

/** Listens for notifications, on a connection of its own, which is opened again whenever it is lost. */
export class Listener {
  readonly #access: Access
  readonly #channel: string
  readonly #told: (payload: string) => void
  #client: pg.Client | null = null
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  /**
   * @param channel a name without special characters
   * @param told gets the payload of each notification; an empty one when the connection is there again
   */
  constructor(access: Access, channel: string, told: (payload: string) => void) {
    this.#access = access
    this.#channel = channel
    this.#told = told
  }

  /** Begins to open the connection. */
  open(): void {
    const client = new pg.Client(this.#access.config)
    this.#client = client
    client.on('error', () => this.#lost(client))
    client.on('end', () => this.#lost(client))
    client.on('notification', ({ payload }) => this.#told(payload ?? ''))
    connect(client, this.#access)
      .then(() => client.query(`LISTEN ${this.#channel}`))
      .then(
        () => this.#told(''),
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
