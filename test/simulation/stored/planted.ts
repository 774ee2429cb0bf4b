/** Faults that are planted in the event store, one at a time. */
import type { Planted } from '../planted.ts'

/** In src/primary/event-store. */
export const STORED_PLANTED: readonly Planted[] = [
  {
    what: 'a row that leaves the hand while a page is read is given again',
    file: 'reader.ts',
    text: 'return this.#left.has(seq) || this',
    instead: 'return this',
  },
  {
    what: 'a page that is read while a row comes back passes that row',
    file: 'reader.ts',
    text: 'cursor.version === version ? readUpTo : Math.min(cursor.after, readUpTo)',
    instead: 'readUpTo',
  },
  {
    what: 'rows of a blocked key are given',
    file: 'reader.ts',
    text: "key.state === 'open' && key.inHand <",
    instead: 'key.inHand <',
  },
  {
    what: 'a key goes on when a full page of it has been read',
    file: 'reader.ts',
    text: 'if (next === undefined && page.length < limit) cursor.caughtUp(key)',
    instead: 'if (next === undefined) cursor.caughtUp(key)',
  },
  {
    what: 'a group that could not be read is taken for read',
    file: 'reader.ts',
    text: "if (cursor.state === 'read') cursor.state = 'behind'",
    instead: '',
  },
  {
    what: 'a replay keeps its key blocked',
    file: 'reader.ts',
    text: 'if (cursor?.unpark(deadLetter)) this.keyReady(cursor)',
    instead: '',
  },
  {
    what: 'a key that was blocked is read from its end',
    file: 'cursor.ts',
    text: 'key.last = Math.min(key.last, place - 1)',
    instead: '',
  },
  {
    what: 'a row leaves the hand before its end is committed',
    file: 'hand.ts',
    text: '    settler.done(held.seq, held.slot)\n  }',
    instead: '    settler.done(held.seq, held.slot)\n    this.#remove(held.seq)\n  }',
  },
  {
    what: 'rows behind a dead letter are handed out',
    file: 'hand.ts',
    text: 'hub.takeBehind(delivery)',
    instead: '',
  },
  {
    what: 'what the hub gives up is not read again',
    file: 'hand.ts',
    text: 'if (!this.#isEnding) this.#parts.reader.back',
    instead: 'if (this.#isEnding) this.#parts.reader.back',
  },
  {
    what: 'changes that the database refused are not written again',
    file: 'settler.ts',
    text: 'await pause(clock, RETRY_MS)',
    instead: 'return { promoted: [], isRepeated }',
  },
  {
    what: 'keys that were blocked before the process are not blocked',
    file: 'event-store.ts',
    text: 'if (!this.replays.isReleased(deadLetter)) this',
    instead: 'if (this.replays.isReleased(deadLetter)) this',
  },
  {
    what: 'a dead letter that is replayed while the blocked keys are read blocks its key',
    file: 'event-store.ts',
    text: 'if (!this.replays.isReleased(deadLetter)) this',
    instead: 'this',
  },
  {
    what: 'a handler gets the payload that another has replaced',
    file: 'hand.ts',
    text: 'unique, payload: bytesOf(now.payload), expiresMs }',
    instead: 'unique, payload: event.payload, expiresMs }',
  },
  {
    what: 'what a lane had stored and not told of is not looked for',
    file: 'event-store.ts',
    text: 'laneGone(): void {\n    this.rangAll()',
    instead: 'laneGone(): void {',
  },
  {
    what: 'rows that were stored before the groups were known come last',
    file: 'sql-store.ts',
    text: 'SELECT d.seq, g.id',
    instead: 'SELECT NULL, g.id',
  },
  {
    what: 'what is due first is not looked for at the start',
    file: 'due-rows.ts',
    text: "this.#state = 'waiting'\n    await this.first()",
    instead: "this.#state = 'waiting'",
  },
  {
    what: 'a clock that is set moves the ends of delays',
    file: 'due-rows.ts',
    text: 'await store.moveDue(',
    instead: 'void (',
  },
  {
    what: 'rows of a share are read before older ones of their keys',
    file: 'share-rows.ts',
    text: 'AND o.due_ms = 0 AND coalesce(o.place, o.seq) < coalesce(heddle_delivery.place, heddle_delivery.seq))',
    instead: 'AND o.due_ms < 0)',
  },
  // Rare: found in the 295th seed.
  {
    what: 'shares that are not known by name wait for those that are',
    file: 'turns.ts',
    text: "return !this.#areNamed || (this.state !== 'read' && this.#wereNamed)",
    instead: 'return !this.#areNamed',
  },
  {
    what: 'the next row of a key is not asked for',
    file: 'reader.ts',
    text: 'now.turns.gone(share, seq, key)',
    instead: 'now.turns.gone(share, seq, null)',
  },
  {
    what: 'a share has its turn again before all others',
    folder: 'primary/events',
    file: 'share-line.ts',
    text: '    ready.delete(next.share)\n    if (line.size > 0) ready.set(next.share, line)',
    instead: '    if (line.size === 0) ready.delete(next.share)',
  },
  {
    what: 'what has begun counts for a part of its time',
    folder: 'primary/events',
    file: 'rate-window.ts',
    text: 'return (Math.floor(nowMs / partMs) + 1) * partMs + limit.perMs',
    instead: 'return (Math.floor(nowMs / partMs) + 1) * partMs',
  },
  {
    what: 'a share whose limit was used up stands aside for good',
    folder: 'primary/events',
    file: 'rate-limits.ts',
    text: "      this.#mayTryAgain(asking)\n      if (asking.share !== '') this.#parts.freed",
    instead: "      if (asking.share !== '') this.#parts.freed",
  },
  {
    what: 'who comes back is told the same chunks again',
    folder: 'runtime/event-store',
    file: 'following.ts',
    text: 'const cursor = cursorIn(this.#from)',
    instead: "const cursor = cursorIn('')",
  },
  {
    what: 'the end of an event is told before its last chunks',
    folder: 'runtime/event-store',
    file: 'following.ts',
    text: 'if (isNew && !isOver(each)) yield',
    instead: 'if (isNew) yield',
  },
  // Rare: found in the 192nd seed.
  {
    what: 'chunks that are not kept any more are passed over in silence',
    folder: 'runtime/event-store',
    file: 'following.ts',
    text: 'if (page.length === 0) return',
    instead: 'if (page.length === 0) return void cursor.set(subscriber, lastN)',
  },
  {
    what: 'a result is stored after the end of its delivery',
    folder: 'runtime/event-store',
    file: 'report.ts',
    text: 'await this.#commit(end)\n',
    instead: 'void this.#commit(end)\n',
  },
  // Rare: found in the 96th seed.
  {
    what: 'chunks of each attempt are numbered anew',
    folder: 'runtime/event-store',
    file: 'report-rows.ts',
    text: 'lastN: Number(row?.last_n ?? 0)',
    instead: 'lastN: 0',
  },
  {
    what: 'a pause ends with its process',
    file: 'event-store.ts',
    text: 'await this.pauses.load()',
    instead: '',
  },
  {
    what: 'a group that is resumed is not read again',
    file: 'stored-pauses.ts',
    text: 'if (id !== undefined) reader.resume(id)',
    instead: '',
  },
  {
    what: 'what has failed is tried again while its subscriber is paused',
    folder: 'primary/events',
    file: 'topology.ts',
    text: 'if (consumer !== undefined) consumer.isPaused = this.pauses.has(event, group)',
    instead: '',
  },
  {
    what: 'one handler more than may runs at a time',
    folder: 'primary/events',
    file: 'permits.ts',
    text: 'pool.inUse < pool.max\n',
    instead: 'pool.inUse <= pool.max\n',
  },
]

/** The same, where several processes share the store. */
export const SHARED_PLANTED: readonly Planted[] = [
  {
    what: 'what has become of a row is written whoever has its slot',
    folder: 'runtime/event-store',
    file: 'server-changes.ts',
    text: 'AND s.epoch = f.epoch WHERE s.member = $1 FOR SHARE OF s`\n/** Deletes',
    instead: 'FOR SHARE OF s`\n/** Deletes',
  },
  // Rare: found in the 57th seed.
  {
    what: 'a lease never ends',
    file: 'lease.ts',
    text: 'sentMs + TRUSTED_MS',
    instead: '2 ** 50',
  },
  {
    what: 'rows that have become visible late are not looked for',
    file: 'late-rows.ts',
    text: 'for (const row of rows) this.#found(row)',
    instead: '',
  },
  {
    what: 'a page passes rows that have become visible late',
    file: 'server-store.ts',
    text: '...(await this.#lateOf(group, behind, limit)), ',
    instead: '',
  },
  {
    what: 'a slot is released while rows of it are in hand',
    file: 'slots.ts',
    text: "owned.state !== 'draining' || owned.inHand > 0 ||",
    instead: "owned.state !== 'draining' ||",
  },
  // Rare: found in the 87th seed.
  {
    what: 'a slot is released before everything of it is written',
    file: 'slots.ts',
    text: "      await written()\n      if (owned.state === 'draining')",
    instead: "      if (owned.state === 'draining')",
  },
  {
    what: 'keys that are blocked in a slot are not blocked for its new owner',
    file: 'event-store.ts',
    text: 'this.reader.park(cursor, key, deadLetter, place)\n      cursor',
    instead: 'cursor',
  },
  {
    what: 'a process that was taken over from counts as no crash',
    file: 'slots.ts',
    text: 'if (crashed.length === 0) return slots',
    instead: 'if (crashed.length >= 0) return slots',
  },
  {
    what: 'all numbers that were drawn count as visible',
    file: 'horizon.ts',
    text: 'if (next > oldest || last <= this.#decided) continue',
    instead: 'if (last <= this.#decided) continue',
  },
  // Rare: found in the 82nd seed.
  {
    what: 'rows are assigned before the groups of their process are stored',
    file: 'server-store.ts',
    text: 'AND m.subscriptions < place)',
    instead: 'AND m.subscriptions < -1)',
  },
  {
    what: 'a key goes on before an older row of it has its groups',
    file: 'reader.ts',
    text: 'else if (row.waits === true) {',
    instead: 'else if (page.length === 0) {',
  },
  {
    what: 'a group is not read again when it has got slots',
    file: 'event-store.ts',
    text: 'cursor.keyOf(key).slot = slot\n    }\n    this.reader.reset(group)',
    instead: 'cursor.keyOf(key).slot = slot\n    }',
  },
  // Rare: found in the 58th seed.
  {
    what: 'a dead letter that was replayed elsewhere keeps its key blocked',
    file: 'membership.ts',
    text: 'if (!still.has(deadLetter)) reader().unpark(cursor.group.id, deadLetter)',
    instead: '',
  },
  // Rare: found in the 94th seed.
  {
    what: 'a process takes slots of living ones',
    file: 'slots.ts',
    text: 'WHERE s.member IS NULL OR s.member = $1 OR NOT EXISTS (SELECT 1 FROM heddle_member WHERE id = s.member)',
    instead: 'WHERE s.member IS NULL OR s.member >= 0',
  },
  {
    what: 'a lease that is over is not watched before it is removed',
    file: 'lease.ts',
    text: 'const LAPSED_MS = 2500',
    instead: 'const LAPSED_MS = 0',
  },
  {
    what: 'a failed look at the slots is the last one',
    file: 'slots.ts',
    text: '    } catch (error) {\n      this.#mustLook = true\n',
    instead: '    } catch (error) {\n',
  },
  {
    what: 'slots that were taken without an answer are kept from all others',
    file: 'slots.ts',
    text: 'if (owner === me) unknown.push(row)',
    instead: '',
  },
  {
    what: 'a page does not tell of new rows at an old place',
    file: 'server-store.ts',
    text: 'AND place <= $4 AND place <= $2',
    instead: 'AND place < 0',
  },
  {
    what: 'a late row for which there was no room counts as read',
    file: 'reader.ts',
    text: 'const next = isAll ? undefined',
    instead: 'const next = isAll || last === undefined || last.place <= after ? undefined',
  },
  {
    what: 'a key is not read from its first row',
    file: 'server-store.ts',
    text: '      let from = 0\n',
    instead: '      let from = after\n',
  },
  {
    what: 'a place that goes back while a page is read leaves late rows to the next one',
    file: 'reader.ts',
    text: 'place > Math.max(cursor.after, cursor.reading)',
    instead: 'place > cursor.after',
  },
  {
    what: 'a late row of a key that has enough in hand counts as given',
    file: 'reader.ts',
    text: "key.last = Math.min(key.last, place - 1)\n    if (key.state !== 'open')",
    instead: "if (key.state !== 'open')",
  },
  {
    what: 'transactions that draw numbers do not hold the horizon',
    file: 'horizon.ts',
    text: '(xid === null || !isBefore(Number(xid), next))',
    instead: 'true',
  },
  {
    what: 'what has begun is not put down in the shared limit',
    file: 'shared-limits.ts',
    text: '(grants[n]!.granted > 0 ? all : [])',
    instead: '(grants[n]!.granted < 0 ? all : [])',
  },
  // Rare: found in the 118th seed.
  {
    what: 'rows without a share are read before older ones of their keys',
    file: 'server-store.ts',
    text: '` AND share IS NULL AND ',
    instead: '` AND share IS NULL OR ',
  },
  // Rare: found in the 163rd seed.
  {
    what: 'late rows are looked for among those without a share',
    file: 'reader.ts',
    text: '      cursor.turns.forgetVain()\n      return this.#news(cursor)\n',
    instead: '      cursor.isUnsharedRead = false\n      return this.#ready(cursor)\n',
  },
  {
    what: 'other processes do not hear of a pause',
    file: 'membership.ts',
    text: 'if (seen !== this.#pausesSeen) await this.#parts.pauses().load()',
    instead: '',
  },
  {
    what: 'each process has all permits',
    file: 'shared-permits.ts',
    text: 'max - held - (others.get(name) ?? 0)',
    instead: 'max - held',
  },
  {
    what: 'permits are kept after the handler has ended',
    folder: 'primary/events',
    file: 'permits.ts',
    text: 'pool.inUse--',
    instead: '',
  },
]

/** An assertion of the store that speaks when a rule is broken, with the fault that breaks it. */
export interface Asserted extends Planted {
  readonly log: 'sqlite' | 'postgres'
  readonly says: RegExp
}

/** One for each invariant of the store. */
export const ASSERTED_PLANTED: readonly Asserted[] = [
  {
    what: 'a key begins its next delivery while one is open',
    log: 'sqlite',
    folder: 'primary/events',
    file: 'key-order.ts',
    text: 'if (behind !== undefined && blocked === undefined) {',
    instead: 'if (behind === null) {',
    says: /^EVENT_STORE_BROKEN 1: row \d+ was to begin while row \d+ of its key is open/,
  },
  {
    what: 'a row leaves the hand before its outcome is committed',
    log: 'sqlite',
    file: 'hand.ts',
    text: '    settler.done(held.seq, held.slot)\n  }',
    instead: '    settler.done(held.seq, held.slot)\n    this.#remove(held.seq)\n  }',
    says: /^EVENT_STORE_BROKEN 1: (an outcome of row \d+ was written, which was not in hand|row \d+ was to begin)/,
  },
  {
    what: 'a row is handed out after its slot was lost',
    log: 'postgres',
    file: 'event-store.ts',
    text: "if (row.slot !== undefined && row.slot.state !== 'held') return false",
    instead: '',
    says: /^EVENT_STORE_BROKEN 1: row \d+ of .+ was to be handed out, whose slot is/,
  },
  {
    what: 'deliveries begin although the lease was not renewed',
    log: 'postgres',
    file: 'hand.ts',
    text: 'this.#parts.isLeaseValid!()) return false',
    instead: 'true) return false',
    says: /^EVENT_STORE_BROKEN 1: row \d+ of .+ was begun after the end of the lease/,
  },
  {
    what: 'a row of a blocked key is handed out',
    log: 'sqlite',
    file: 'reader.ts',
    text: "key.state === 'open' && key.inHand <",
    instead: 'key.inHand <',
    says: /^EVENT_STORE_BROKEN 1: row \d+ of .+ was to be handed out, whose key is blocked/,
  },
]
