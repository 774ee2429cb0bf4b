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
    text: '    settler.done(held.seq)\n  }',
    instead: '    settler.done(held.seq)\n    this.#remove(held.seq)\n  }',
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
    folder: 'event-log',
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

/** The same, where several processes share the log. */
export const SHARED_PLANTED: readonly Planted[] = [
  {
    what: 'slots are handed over of which something is in hand',
    file: 'shared-log.ts',
    text: 'this.#slots.handOver(leaving)',
    instead: 'this.#slots.handOver(this.#slots.leaving)',
  },
  {
    what: 'a slot is handed over with what is in hand',
    file: 'shared-log.ts',
    text: 'if (events.has((event) => isLeaving(event) || event.slot === UNKNOWN_SLOT)) return',
    instead: '',
  },
  {
    what: 'what has come with a slot passes letters that are not known yet',
    file: 'shared-work.ts',
    text: ' AND held.slot = ANY($2::int[])',
    instead: '',
  },
  {
    what: 'what is freed is taken as it was before it was handled',
    file: 'shared-log.ts',
    text: 'await settler.written()\n      await free(',
    instead: 'await free(',
  },
  {
    what: 'what waits behind a letter is freed, and what is at work waits there, too',
    file: 'shared-log.ts',
    text: '      ...this.#options.hub.parked.positions,\n      ...freed.list(),\n',
    instead: '',
  },
  {
    what: 'while own events are parted with younger ones of their keys are taken',
    file: 'shared-log.ts',
    text: "this.#isReady && this.#mode !== 'parting' && ",
    instead: 'this.#isReady && ',
  },
  {
    what: 'an event to which nobody subscribes stays for ever',
    file: 'shared-work.ts',
    text: 'return this.#mayHaveUnwanted || this.#hungry.length > 0',
    instead: 'return this.#hungry.length > 0',
  },
  {
    what: 'the replay of a key that is handed over holds it up for ever',
    file: 'open-letters.ts',
    text: '    this.#findReplays(open)\n',
    instead: '',
  },
  {
    what: 'what is new comes before it is known what has waited',
    file: 'feed.ts',
    text: 'return this.#parts.relay !== null || this.#parts.groups.hasFound',
    instead: 'return true',
  },
  {
    what: 'what was begun in time is dropped when it has waited for its group',
    file: 'stored-events.ts',
    text: 'isBegun === true ? DUE_BEGUN_WITH_GROUP : DUE_WITH_GROUP',
    instead: 'isBegun === true ? DUE_WITH_GROUP : DUE_WITH_GROUP',
  },
  {
    what: 'a process stores nothing before the others reckon with it, but they do not say so',
    file: 'shared-log.ts',
    text: 'if (waited === undefined) return',
    instead: 'return',
  },
  {
    what: 'a process that stood still is not taken over',
    file: 'membership.ts',
    text: 'if (!hasLapsed && !isDead) continue',
    instead: 'if (!isDead) continue',
  },
  {
    what: 'what an ended process had is taken over before its last commits are over',
    file: 'membership.ts',
    text: 'await database.execute(AWAIT_INSERTS, [epoch])',
    instead: '',
  },
]
