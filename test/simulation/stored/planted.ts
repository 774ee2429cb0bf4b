/** Faults that are planted in the durable log, one at a time. */
import type { Planted } from '../planted.ts'

/** In src/primary/event-store. */
export const STORED_PLANTED: readonly Planted[] = [
  {
    what: 'a row that leaves the hand while a page is read is given again',
    folder: 'event-store',
    file: 'reader.ts',
    text: 'if (this.#left.has(row.seq) || this',
    instead: 'if (this',
  },
  {
    what: 'a page that is read while a row comes back passes that row',
    folder: 'event-store',
    file: 'reader.ts',
    text: 'last !== undefined && cursor.version === version',
    instead: 'last !== undefined',
  },
  {
    what: 'rows of a blocked key are given',
    folder: 'event-store',
    file: 'reader.ts',
    text: "if (key.state !== 'open' || place",
    instead: 'if (place',
  },
  {
    what: 'a key goes on when a full page of it has been read',
    folder: 'event-store',
    file: 'reader.ts',
    text: 'if (page.length < limit) cursor.caughtUp(key)',
    instead: 'cursor.caughtUp(key)',
  },
  {
    what: 'a group that could not be read is taken for read',
    folder: 'event-store',
    file: 'reader.ts',
    text: "if (cursor.state === 'read') cursor.state = 'behind'",
    instead: '',
  },
  {
    what: 'a replay keeps its key blocked',
    folder: 'event-store',
    file: 'reader.ts',
    text: 'if (cursor?.unpark(letter)) this.keyReady(cursor)',
    instead: '',
  },
  {
    what: 'a key that was blocked is read from its end',
    folder: 'event-store',
    file: 'cursor.ts',
    text: 'key.last = Math.min(key.last, place - 1)',
    instead: '',
  },
  {
    what: 'a row leaves the hand before its end is committed',
    folder: 'event-store',
    file: 'hand.ts',
    text: '    settler.done(held.seq, held.slot)\n  }',
    instead: '    settler.done(held.seq, held.slot)\n    this.#remove(held.seq)\n  }',
  },
  {
    what: 'what stands behind a dead letter is given all the same',
    folder: 'event-store',
    file: 'hand.ts',
    text: 'hub.takeBehind(delivery)',
    instead: '',
  },
  {
    what: 'what the hub gives up is not read again',
    folder: 'event-store',
    file: 'hand.ts',
    text: 'if (!this.#isEnding) this.#parts.reader.back',
    instead: 'if (this.#isEnding) this.#parts.reader.back',
  },
  {
    what: 'changes that the database refused are not written again',
    folder: 'event-store',
    file: 'settler.ts',
    text: 'await pause(clock, RETRY_MS)',
    instead: 'return { promoted: [], isRepeated }',
  },
  {
    what: 'keys that were blocked before the process are not blocked',
    folder: 'event-store',
    file: 'event-store.ts',
    text: 'if (!this.#released.has(deadLetter)) this',
    instead: 'if (this.#released.has(deadLetter)) this',
  },
  {
    what: 'a dead letter that is replayed while the blocked keys are read blocks its key',
    folder: 'event-store',
    file: 'event-store.ts',
    text: 'if (!this.#released.has(deadLetter)) this',
    instead: 'this',
  },
  {
    what: 'what a lane had stored and not told of is not looked for',
    folder: 'event-store',
    file: 'durable.ts',
    text: 'this.#store?.reader.rangAll()',
    instead: '',
  },
  {
    what: 'rows that were stored before the groups were known come last',
    folder: 'event-store',
    file: 'sql-store.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: text of the source
    text: 'SELECT d.seq, ${group}',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: text of the source
    instead: 'SELECT NULL, ${group}',
  },
  {
    what: 'what is due first is not looked for at the start',
    folder: 'event-store',
    file: 'due-rows.ts',
    text: "this.#state = 'waiting'\n    await this.first()",
    instead: "this.#state = 'waiting'",
  },
  {
    what: 'a clock that is set moves the ends of delays',
    folder: 'event-store',
    file: 'due-rows.ts',
    text: 'await store.moveDue(',
    instead: 'void (',
  },
]

/** The same, where several processes share the store: none yet, the simulated server does not run its statements. */
export const SHARED_PLANTED: readonly Planted[] = []
