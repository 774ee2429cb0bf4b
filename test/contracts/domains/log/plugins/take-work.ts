import { execSync } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { threadId } from 'node:worker_threads'
import {
  type Data,
  type Db,
  DbError,
  type EventBus,
  type EventMeta,
  type Payload,
  Plugin,
  type Tools,
  Unrecoverable,
} from '#heddle'
import type { Step, Work } from '../../../log-store.ts'

const { LOG_NOTES = '', LOG_NAME = '', LOG_WITHOUT = '' } = process.env
/** How often a handler that is held looks whether it may go on, milliseconds. */
const LOOK_MS = 10

/** Does what each event says, and notes in a file that all processes share when that begins and ends. */
export default class TakeWork extends Plugin {
  #bus: EventBus
  #db: Db

  constructor({ http, db, event_bus }: Tools) {
    super()
    this.#bus = event_bus
    this.#db = db
    http.addEndpoint('/publish', 'POST', this.publish)
    http.addEndpoint('/burst', 'POST', this.burst)
    http.addEndpoint('/late', 'POST', this.late)
    http.addEndpoint('/letters', 'GET', async () => ({ letters: await event_bus.getDeadLetters() }))
    http.addEndpoint('/letters/:id/replay', 'POST', async ({ id }) => ({ done: await event_bus.replayDeadLetter(id) }))
    http.addEndpoint('/letters/:id/edit', 'POST', async ({ id, payload }) => ({
      done: await event_bus.editDeadLetter(id, payload),
    }))
    http.addEndpoint('/letters/:id/delete', 'POST', async ({ id }) => ({ done: await event_bus.deleteDeadLetter(id) }))
  }

  override onBoot(): void {
    const bus = this.#bus
    if (LOG_WITHOUT !== 'work') bus.subscribe('work', this.onWork, { retries: 3, backoffMs: 5 })
    bus.subscribe('work', this.onToo)
    bus.subscribe('patient', this.onPatient, { retries: 1, backoffMs: 8000 })
    bus.subscribe('bounded', this.onBounded, { concurrency: 2 })
    bus.subscribe('told', this.onTold, { broadcast: true })
    bus.subscribe('asking', this.onAsking, { retries: 2, backoffMs: 100 })
    bus.subscribe('parked', this.onParkedToo)
    bus.subscribe('parked', this.onParked, { onDead: 'park' })
  }

  /** Made later than the others: it ends with its thread. */
  override onReady(): void {
    if (LOG_NAME === 'late') this.#bus.subscribe('late', this.onLate, { concurrency: 1 })
  }

  async publish({ event, work, options }: Data) {
    const { at, ...more } = options as { at?: string }
    const due = at === undefined ? {} : { at: new Date(at) }
    return { id: await this.#bus.publish(event as string, work as Payload, { ...more, ...due }) }
  }

  /** Somebody subscribes, and an event is published at once. */
  async late({ event, work }: Data) {
    this.#bus.subscribe(event as string, this.onLate)
    return { id: await this.#bus.publish(event as string, work as Payload) }
  }

  /** Without waiting for one another. */
  async burst({ event, works, keys, delayMs }: Data) {
    const optionsOf = (n: number) => {
      const key = (keys as (string | null)[])[n]
      return { ...(key == null ? {} : { key }), delayMs: delayMs as number }
    }
    const each = (works as Payload[]).map((work, n) => this.#bus.publish(event as string, work, optionsOf(n)))
    return { ids: await Promise.all(each) }
  }

  onWork(work: Payload, event: EventMeta): Promise<void> {
    return this.#do('work', work, event)
  }

  /** Another subscriber, with which nothing ever goes wrong. */
  onToo(work: Payload, event: EventMeta): Promise<void> {
    return this.#do('too', { ...work, course: [] }, event)
  }

  onPatient(work: Payload, event: EventMeta): Promise<void> {
    return this.#do('patient', work, event)
  }

  onBounded(work: Payload, event: EventMeta): Promise<void> {
    return this.#do('bounded', work, event)
  }

  onLate(work: Payload, event: EventMeta): Promise<void> {
    return this.#do('late', work, event)
  }

  onTold(work: Payload, event: EventMeta): Promise<void> {
    return this.#do('told', work, event)
  }

  /** Its work needs the database. */
  async onAsking(work: Payload, event: EventMeta): Promise<void> {
    await this.#db.query('SELECT 1')
    await this.#do('asking', work, event)
  }

  onParked(work: Payload, event: EventMeta): Promise<void> {
    return this.#do('parked', work, event)
  }

  onParkedToo(work: Payload, event: EventMeta): Promise<void> {
    return this.#do('parked-too', { ...work, course: [] }, event)
  }

  async #do(group: string, payload: Payload, { id, parent_id, attempt }: EventMeta): Promise<void> {
    const { tag, n, key, course = [] } = payload as unknown as Work
    const note = (what: string): void => {
      const where = { process: LOG_NAME, thread: threadId, atMs: Date.now() }
      const line = { what, group, tag, n, key, id, attempt, parent: parent_id, ...where }
      appendFileSync(LOG_NOTES, `${JSON.stringify(line)}\n`)
    }
    note('begin')
    const steps = course[Math.min(attempt, course.length) - 1] ?? []
    for (const step of typeof steps === 'string' ? [steps] : steps) await this.#step(step, { tag, n, key })
    note('end')
  }

  /** A tool is away, so many times. */
  #needs(times: number, { tag, n }: Work): void {
    const mark = `${LOG_NOTES}.${tag} ${n}`
    const had = existsSync(mark) ? readFileSync(mark, 'latin1').length : 0
    if (had >= times) return
    appendFileSync(mark, '.')
    throw new Error('not done', { cause: new DbError('unavailable', 'as it was told') })
  }

  async #step(step: Step, work: Work): Promise<void> {
    const [verb] = step.split(' ')
    const value = step.slice(verb!.length + 1)
    if (verb === 'throw') throw new Error('as it was told')
    if (verb === 'odd') throw new Error('half of a smile \ud83d\0')
    if (verb === 'unrecoverable') throw new Unrecoverable('as it was told')
    if (verb === 'exit') process.exit(1)
    if (verb === 'kill') execSync(`kill -9 ${process.pid}`)
    if (verb === 'wait') await sleep(Number(value))
    if (verb === 'block') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(value))
    if (verb === 'hold') while (!existsSync(`${LOG_NOTES}.${value}`)) await sleep(LOOK_MS)
    if (verb === 'away') this.#needs(Number(value), work)
    if (verb === 'publish') await this.#bus.publish('work', { ...work, tag: value })
    if (verb !== 'exit-once' && verb !== 'fail-once') return
    const mark = `${LOG_NOTES}.${work.tag} ${work.n}`
    if (existsSync(mark)) return
    writeFileSync(mark, '')
    if (verb === 'exit-once') process.exit(1)
    throw new Unrecoverable('as it was told')
  }
}
