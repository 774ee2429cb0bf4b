/** Faults that are planted in the durable log, one at a time. */
import type { Planted } from '../planted.ts'

/** In src/primary/event-log. */
export const STORED_PLANTED: readonly Planted[] = [
  {
    what: 'an event that nobody had handed on goes before older ones of its key',
    file: 'feed.ts',
    text: 'this.passed.insert(lost)',
    instead: 'if (lost.length > 0) this.#free(lost)',
  },
  {
    what: 'a replay whose commit was not answered is forgotten',
    file: 'stored-letters.ts',
    text: 'if (replayed !== null)\n        void this.#goOnIf',
    instead: 'if (replayed === undefined)\n        void this.#goOnIf',
  },
  {
    what: 'a key waits for a letter whose deletion was not answered',
    file: 'stored-letters.ts',
    text: 'if (letter !== null)\n        void this.#goOnIf',
    instead: 'if (letter === undefined)\n        void this.#goOnIf',
  },
  {
    what: 'the group of a dead letter gets the event again after a death of the process',
    file: 'stored-events.ts',
    text: 'if (!event.isDone) this.#split(event, delivery)\n    this.#end',
    instead: 'this.#end',
  },
  {
    what: 'changes that the database refused are not written again',
    file: 'settler.ts',
    text: 'await pause(this.#options.clock, RETRY_MS)',
    instead: 'break',
  },
  {
    what: 'what a lane had stored and not handed on is not looked for',
    file: 'positions.ts',
    text: 'if (this.#unknown.has(seq)) lost.push(seq)\n        else unknown.add(seq)',
    instead: 'unknown.delete(seq)',
  },
  {
    what: 'what an earlier process has left is not read',
    file: 'feed.ts',
    text: 'this.#left = { from: found.first - 1, last: found.last }',
    instead: '',
  },
  {
    what: 'what comes passes what an earlier process has left',
    file: 'feed.ts',
    text: 'this.size + this.#returned.length > 0 || this.#hasLeft',
    instead: 'false',
  },
  {
    what: 'what has left the hub while a page was read is delivered again',
    file: 'feed.ts',
    text: 'isStale: gone.size > 0 && rows.some(({ row }) => gone.has(Number(row.seq)))',
    instead: 'isStale: false',
  },
  {
    what: 'letters of before do not park',
    file: 'open-letters.ts',
    text: 'if (isParked && (seq === 0',
    instead: 'if (!isParked && (seq === 0',
  },
  {
    what: 'a replay that was under way when its process died waits behind its own letter',
    file: 'open-letters.ts',
    text: 'if (letter.isParked) this.#hub.parked.replaying(letter.place, letter.id, seq)',
    instead: '',
  },
  {
    what: 'an event that is due when the log cannot be read is lost',
    file: 'due-events.ts',
    text: 'this.#read = isAll ? { dueMs: this.#aheadMs',
    instead: 'this.#read = isAll ? { dueMs: this.#aheadMs + 60_000',
  },
  {
    what: 'the rest of a split event is forgotten with its first part',
    file: 'stored-events.ts',
    text: 'return this.isIdle && !this.#waits?.size',
    instead: 'return this.isIdle',
  },
  {
    what: 'who is done gets the event again when what waits behind a letter goes on',
    file: 'stored-events.ts',
    text: 'else if (event.isIdle) this.#split(event, delivery)',
    instead: "else if (event.isIdle && event.waitingFor('group').length > 0) this.#split(event, delivery)",
  },
  // Rare: found in the 734th and the 1,159th seed.
  {
    what: 'of two lanes the one that is heard first comes first',
    file: 'feed.ts',
    text: '    catchUp()\n',
    instead: '',
  },
  {
    what: 'what waits behind a letter is lost with its process when its event waits for another group, too',
    file: 'stored-events.ts',
    text: "for (const group of event.waitingFor('letter')) this.#settler",
    instead: 'for (const group of [] as string[]) this.#settler',
  },
  {
    what: 'what is due later is counted for ever',
    file: 'due-events.ts',
    text: 'if (later < COUNTED_MAX) this.#later = later',
    instead: '',
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
