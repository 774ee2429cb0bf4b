import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Heddle } from '../../support/heddle.ts'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { isEmpty, type LogStore, onPostgres } from './databases.ts'

const DOMAINS = fileURLToPath(new URL('../../fixtures/shared-log', import.meta.url))

/** A row of `noted`. */
export interface Note {
  what: 'begin' | 'end'
  key: string
  number: number
  event_id: string
  replica: string
}

/** Processes on one database that come and go, and what they were asked. */
export class Steps {
  readonly store: LogStore
  readonly living: Heddle[] = []
  /** Ids of accepted events by key and number. */
  readonly accepted = new Map<string, string>()

  constructor(store: LogStore) {
    this.store = store
  }

  static async make(t: TestContext): Promise<Steps | null> {
    const store = await onPostgres(t, false, DOMAINS)
    return store === null ? null : new Steps(store)
  }

  async start(replica: string, env: Record<string, string> = {}): Promise<Heddle> {
    const own = { EVENT_BUS_DRIVER: 'database', REPLICA_ID: replica, REPLICA: replica, LANE_ENV: 'REPLICA,HOLD' }
    const heddle = await this.store.start({ ...own, ...env })
    this.living.push(heddle)
    return heddle
  }

  /** Resolves when so many processes take part, and have shared the keys out. */
  async areReady(count: number): Promise<void> {
    await until(async () => {
      const [row] = await this.store.rows<{ ready: boolean }>(
        `SELECT (SELECT count(*) FROM heddle_process WHERE is_ready = 1) = ${count} AND (SELECT count(DISTINCT holder) FROM heddle_slot) = ${count}
           AND NOT EXISTS (SELECT 1 FROM heddle_slot WHERE heir <> 0 OR holder = 0) AS ready`,
      )
      return row!.ready
    }, `${count} processes`)
  }

  /** One step after the other, each published by another process, when the one before is accepted. */
  async publish(key: string, numbers: readonly number[], step: object = {}): Promise<void> {
    for (const number of numbers) {
      for (let turn = number; ; turn++) {
        const heddle = this.living[turn % this.living.length]!
        const body = { step: { key, number, ...step }, options: { key }, bare: number % 3 === 0 }
        const answer = await post(heddle, '/steps', body).catch(() => null)
        // One that was killed may have taken it, and does not say so.
        if (answer?.id === undefined) continue
        this.accepted.set(`${key} ${number}`, answer.id)
        break
      }
    }
  }

  /** Work without an order, of which a process does little at a time. */
  async give(heddle: Heddle, number: number, work: object = {}): Promise<void> {
    const { id } = await post(heddle, '/steps', { event: 'work.given', step: { number, ...work }, bare: true })
    this.accepted.set(id, id)
  }

  notes(): Promise<Note[]> {
    return this.store.rows<Note>('SELECT what, key, number, event_id, replica FROM noted ORDER BY position')
  }

  async allHandled(): Promise<Note[]> {
    await until(async () => {
      const ended = new Set((await this.notes()).filter(({ what }) => what === 'end').map(({ event_id }) => event_id))
      return [...this.accepted.values()].every((id) => ended.has(id))
    }, 'all that was accepted')
    await isEmpty(this.store)
    return this.notes()
  }
}
