/** Judges from outside what several processes on one server have done: who began what while whose lease held, and whether an effect is there twice. */
import assert from 'node:assert/strict'
import type { Note } from './log-store.ts'

/** How the lease of a process ended, milliseconds since the epoch. */
export interface LeaseEnd {
  /** From then on others may begin what it has begun. */
  readonly lostMs: number
  /** From then on it must begin nothing. */
  readonly overMs: number
}

/**
 * Asserts that the handlers of a slot are at work in one process at a time, unless the lease of the other one has ended.
 * @param notes of one group, in their order over all processes
 * @param ends of processes that were killed, or stood still for longer than their lease
 */
export function assertOneOwner(
  notes: readonly Note[],
  slotOf: (key: string) => number,
  ends: ReadonlyMap<string, LeaseEnd>,
): void {
  /** By slot: the handlers at work, by process and event. */
  const open = new Map<number, Map<string, Note>>()
  for (const note of notes) {
    const slot = slotOf(note.key!)
    const working = open.get(slot) ?? new Map<string, Note>()
    open.set(slot, working)
    const name = `${note.process} ${note.id}`
    if (note.what === 'end') {
      working.delete(name)
      continue
    }
    const told = `${note.key} ${note.n} began in ${note.process}`
    assert.ok(note.atMs < (ends.get(note.process)?.overMs ?? Infinity), `${told} after the end of its lease`)
    for (const other of working.values()) {
      const isExcused = other.process === note.process || note.atMs >= (ends.get(other.process)?.lostMs ?? Infinity)
      assert.ok(isExcused, `${told} while ${other.key} ${other.n} of slot ${slot} was at work in ${other.process}`)
    }
    working.set(name, note)
  }
}

/** Asserts that each accepted event has its effect, and that none is there twice. @param effects the event of each row */
export function assertEffectsOnce(effects: readonly string[], accepted: readonly string[]): void {
  const seen = new Set<string>()
  for (const id of effects) {
    assert.ok(!seen.has(id), `the effect of ${id} is there twice`)
    seen.add(id)
  }
  for (const id of accepted) assert.ok(seen.has(id), `the effect of ${id} is missing`)
}
