/** What the rules of the contract of logs share: to wait for what subscribers note, and to judge its order. */
import assert from 'node:assert/strict'
import type { DeadLetter } from '../../src/contracts/event-bus.ts'
import { limitOf, until } from '../support/until.ts'
import type { LogProcess, LogStore, Note } from './log-store.ts'

/** Of the load: how many keys it has, and the pause between two events of one, milliseconds. */
export const LOAD_KEYS = 8
const LOAD_PAUSE_MS = 10
/** Within this something is accepted, milliseconds: longer where the cores are contended. */
const GAP_MS = 5000

export const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n)

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** For what has to be done before something is due: a busy machine gets twice the time, again and again. @throws when that is no matter of time */
export function* doubled(firstMs: number): Generator<number> {
  for (let ms = firstMs; ms <= 16 * firstMs; ms *= 2) yield ms
  throw new Error(`Not in time, however late that is: ${16 * firstMs} ms`)
}

export function waitFor<T>(log: LogStore, condition: () => T | Promise<T>, what: string): Promise<NonNullable<T>> {
  return until(condition, what, log.patienceMs)
}

/** What a group has noted of a tag. */
export function notesOf(log: LogStore, tag: string, group: string, what: Note['what'] = 'end'): Note[] {
  return log.notes(tag).filter((note) => note.group === group && note.what === what)
}

export async function handled(log: LogStore, tag: string, group: string, ids: readonly string[]): Promise<Note[]> {
  const isHandled = (): boolean => {
    const seen = new Set(notesOf(log, tag, group).map(({ id }) => id))
    return ids.every((id) => seen.has(id))
  }
  await waitFor(log, isHandled, `${ids.length} events handled by ${group}`)
  return notesOf(log, tag, group)
}

/** Nothing is left in the log. */
export async function isEmpty(log: LogStore): Promise<void> {
  await waitFor(log, async () => (await log.left()) === 0, 'an empty log')
}

/** The letter of an event and a group, once there is one. */
export function letterOf(log: LogStore, process: LogProcess, id: string, group = ''): Promise<DeadLetter> {
  const isIt = (letter: DeadLetter): boolean => letter.event_id === id && letter.subscriber.includes(group)
  return waitFor(log, async () => (await process.letters()).find(isIt), `the letter of ${id}`)
}

/**
 * One at a time, and each after all that were published before it. What is handled again, because a killed process could not say that it was
 * handled, comes as it comes.
 * @param killed names of processes: what they had begun is begun again
 */
export function assertOrder(notes: readonly Note[], killed: readonly string[] = []): void {
  for (const key of new Set(notes.map((note) => note.key))) {
    const seen = new Set<string>()
    let highest = Number.NEGATIVE_INFINITY
    let open: Note | null = null
    for (const note of notes.filter((each) => each.key === key)) {
      if (note.what === 'end') {
        if (open?.id === note.id) open = null
        continue
      }
      const place = `${key} ${note.n} in ${note.process}`
      const isAlone: boolean = open === null || open.id === note.id || killed.includes(open.process)
      assert.ok(isAlone, `${place} began before ${open?.n} ended in ${open?.process}`)
      assert.ok(seen.has(note.id) || note.n > highest, `${place} began after ${highest}`)
      highest = Math.max(highest, note.n)
      seen.add(note.id)
      open = note
    }
  }
}

export const orderOf = (log: LogStore, tag: string, group: string): Note[] =>
  log.notes(tag).filter((note) => note.group === group)

/** Publishes events of some keys by whichever of the living processes takes them, each of a key when the one before is accepted. */
export interface Load {
  readonly accepted: readonly string[]
  /** How many times nothing was accepted for long. */
  readonly gaps: number
}

/** @returns the ids of what was accepted while `work` ran */
export async function underLoad(
  tag: string,
  living: readonly LogProcess[],
  work: (load: Load) => Promise<void>,
): Promise<string[]> {
  const accepted: string[] = []
  const load = { accepted, gaps: 0 }
  let isOver = false
  let isLate = limitOf(GAP_MS)
  const publish = async (key: string): Promise<void> => {
    for (let n = 0; !isOver; n++) {
      const course = ['wait 2' as const]
      // What a process that is killed has taken without an answer may be there or not.
      const id = await living[n % living.length]?.publish('work', { tag, n, course }, { key }).catch(() => null)
      if (typeof id === 'string') {
        accepted.push(id)
        if (isLate()) load.gaps++
        isLate = limitOf(GAP_MS)
      }
      await pause(LOAD_PAUSE_MS)
    }
  }
  const clients = numbers(LOAD_KEYS).map((n) => publish(`${tag} ${n}`))
  try {
    await work(load)
  } finally {
    isOver = true
    await Promise.all(clients)
  }
  return accepted
}
