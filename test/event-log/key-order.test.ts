import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Heddle } from '../support/heddle.ts'
import { post } from '../support/started-service.ts'
import { until } from '../support/until.ts'
import { isEmpty, kill, type LogStore, onPostgres } from './databases.ts'

const DOMAINS = fileURLToPath(new URL('../fixtures/shared-log', import.meta.url))
const KEYS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']

interface Note {
  what: 'begin' | 'end'
  key: string
  number: number
  event_id: string
  replica: string
}

/** Processes that come and go, and what they were asked. */
class Steps {
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

  async start(replica: string): Promise<Heddle> {
    const env = { EVENT_BUS_DRIVER: 'database', REPLICA_ID: replica, REPLICA: replica, LANE_ENV: 'REPLICA' }
    const heddle = await this.store.start(env)
    this.living.push(heddle)
    return heddle
  }

  gone(heddle: Heddle): void {
    this.living.splice(this.living.indexOf(heddle), 1)
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

/**
 * Each step begins after all that were published before it, and one at a time. What is handled again, because a killed process could not say that it was
 * handled, comes as it comes.
 * @param killed replicas: what they had begun is begun again
 */
function assertOrder(notes: readonly Note[], killed: readonly string[] = []): void {
  for (const key of KEYS) {
    let highest = 0
    let open: Note | null = null
    const seen = new Set<string>()
    for (const note of notes.filter((each) => each.key === key)) {
      const { what, number, event_id, replica } = note
      const place = `${key} ${number} in ${replica} (${event_id})`
      if (what === 'begin') {
        const isAlone = open === null || open.event_id === event_id || killed.includes(open.replica)
        assert.ok(isAlone, `${place} began before ${open?.number} ended in ${open?.replica}`)
        assert.ok(seen.has(event_id) || number >= highest, `${place} began after ${highest}`)
        highest = Math.max(highest, number)
        seen.add(event_id)
        open = note
      } else if (open?.event_id === event_id) open = null
    }
  }
}

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)

test('events of one key that several processes publish are handled in their order, one at a time', async (t) => {
  const steps = await Steps.make(t)
  if (steps === null) return
  await Promise.all([steps.start('first'), steps.start('second')])
  await Promise.all(KEYS.map((key) => steps.publish(key, numbers(1, 12))))
  const notes = await steps.allHandled()
  assertOrder(notes)
  assert.deepEqual([...new Set(notes.map(({ replica }) => replica))].sort(), ['first', 'second'], 'both have a part')
})

test('the order of a key holds while processes come, are killed and end', async (t) => {
  const steps = await Steps.make(t)
  if (steps === null) return
  const first = await steps.start('first')
  const publishing = Promise.all(KEYS.map((key) => steps.publish(key, numbers(1, 60), { ms: 3 })))
  const reached = (number: number) => until(() => steps.accepted.has(`a ${number}`), `step ${number}`)
  await reached(5)
  const second = await steps.start('second')
  await reached(20)
  steps.gone(first)
  await kill(first)
  await reached(30)
  await steps.start('third')
  await reached(45)
  steps.gone(second)
  assert.equal(await second.stop(), 0)
  await publishing
  assertOrder(await steps.allHandled(), ['first'])
})
