/** Rows of a group whose shares take turns: each is given once, keys keep their order, and nobody waits behind the many of another. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import type { Cursor } from '../../../src/primary/event-store/cursor.ts'
import { Reader } from '../../../src/primary/event-store/reader.ts'
import type { DeliveryStore, StoredDelivery } from '../../../src/primary/event-store/store.ts'
import { Turns } from '../../../src/primary/event-store/turns.ts'
import { Random } from '../../support/random.ts'
import { until } from '../../support/until.ts'

interface Row {
  seq: number
  share: string
  key: string | null
  /** Settled next, after it has left the hub. */
  isEnding: boolean
}

/** Rows in memory, as the databases read them. A window of 16 stands for their 1,024. */
class Rows implements DeliveryStore {
  rows: Row[] = []
  readonly parked = new Set<string>()
  /** Rows that were looked at for shares. */
  looked = 0
  #seq = 0

  add(share: string, key: string | null = null): void {
    this.rows.push({ seq: ++this.#seq, share, key, isEnding: false })
  }

  #delivery({ seq, share, key }: Row): StoredDelivery {
    const event = {
      id: `evt_${seq}`,
      parentId: null,
      ancestors: '',
      event: 'some',
      emitter: 'shop',
      requestId: null,
      key,
      trace: '',
      payloadKeys: '',
      timestampMs: 0,
      delayMs: 0,
      ttlMs: 0,
      unique: null,
      shares: share,
      seq: 0,
      subscriber: 0,
      attempt: 0,
      beginBy: 0,
      payload: '{}',
    }
    const tried = { expiresMs: 0, attempt: 1, deaths: 0, error: '', isBegun: false, retryMs: 0, crashes: 0 }
    return { seq, place: seq, thread: 1, event, ...tried }
  }

  async readGroup(_: number, after: number, limit: number, areTurnsTaken: boolean) {
    const rows = this.rows.filter(
      (row) => row.seq > after && (!areTurnsTaken || (row.share === '' && this.#isHead(row))),
    )
    return { rows: rows.slice(0, limit).map((row) => this.#delivery(row)), readTo: this.#seq }
  }

  #isHead({ seq, key }: Row): boolean {
    return key === null || (!this.parked.has(key) && !this.rows.some((other) => other.key === key && other.seq < seq))
  }

  async readKey(_: number, key: string, after: number, limit: number) {
    const rows = this.rows.filter((row) => row.key === JSON.parse(key) && row.seq > after)
    return rows.slice(0, limit).map((row) => this.#delivery(row))
  }

  async nextShares(_: number, after: readonly string[], limit: number) {
    const shares = [...new Set(this.rows.map(({ share }) => share))].filter((share) => share !== '').sort()
    return after.map((last, n) => shares.filter((share) => share.startsWith(String(n)) && share > last).slice(0, limit))
  }

  async readShares(_: number, asks: Parameters<DeliveryStore['readShares']>[1]) {
    return asks.flatMap(({ share, limit, after, inHand }) => {
      const window = this.rows
        .filter((row) => row.share === share && row.seq > after && !inHand.includes(row.seq))
        .slice(0, 16)
      this.looked += window.length
      return window
        .filter((row) => this.#isHead(row))
        .slice(0, limit)
        .map((row) => this.#delivery(row))
    })
  }

  async passShare(_: number, { share, after }: Parameters<DeliveryStore['passShare']>[1]) {
    return this.rows.filter((row) => row.share === share && row.seq > after)[15]?.seq ?? 0
  }

  async sharesOfKeys(_: number, keys: readonly string[]) {
    return keys.flatMap((key) => {
      const row = this.rows.find((each) => each.key === key)
      return row === undefined ? [] : [{ key, share: row.share }]
    })
  }

  takeTurns(): void {}
}

/** A reader over such rows, and a hub that ends them when the test says so. */
function start(store: Rows, roomOfShare?: (share: string) => number, isPaused = () => false) {
  const inHub: { cursor: Cursor; row: StoredDelivery }[] = []
  const settling: { cursor: Cursor; row: StoredDelivery }[] = []
  const given: number[] = []
  const isInHand = (seq: number): boolean => [...inHub, ...settling].some(({ row }) => row.seq === seq)
  const reader = new Reader({
    store,
    clock: SYSTEM_CLOCK,
    maxQueue: 100_000,
    isInHand,
    isPaused,
    isSuspect: () => false,
    note: (row) => Promise.resolve(row),
    untried: () => {},
    isTried: () => true,
    give: (cursor, row) => {
      assert.ok(!isInHand(row.seq), `${row.seq} is given twice`)
      const { key } = row.event
      const first = store.rows.find((each) => each.key !== null && each.key === key && !isInHand(each.seq))
      if (key !== null) assert.equal(first?.seq, row.seq, `an older one of ${key} waits`)
      given.push(row.seq)
      inHub.push({ cursor, row })
      return true
    },
    onMalformed: () => assert.fail(),
    areTurnsTaken: () => true,
    ...(roomOfShare && { roomOfShare: (_, share) => roomOfShare(share) }),
    report: (_, message) => assert.fail(message),
  })
  const cursor = reader.add({ id: 1, event: 'some', name: 'group', kind: 'group' })
  reader.open()
  const left = (n: number) => {
    const [ended] = inHub.splice(n, 1)
    const { event } = ended!.row
    reader.rowLeft(ended!.cursor, 2, event.key, event.shares)
    return ended!
  }
  return {
    reader,
    cursor,
    inHub,
    settling,
    given,
    /** The handler has ended. */
    end(n: number) {
      settling.push(left(n))
    },
    /** It stays in the store. */
    giveBack(n: number) {
      const { row } = left(n)
      reader.gone(row.seq, cursor, row.event.shares, row.event.key)
      reader.back(1, row.place, row.event.key, row.event.shares)
    },
    /** The outcome is committed. */
    settle() {
      const { row } = settling.shift()!
      store.rows = store.rows.filter(({ seq }) => seq !== row.seq)
      reader.gone(row.seq, cursor, row.event.shares, row.event.key)
    },
  }
}

/** Makes shares take turns: the limit of one of them is used up. */
const USED_UP = '1["used up"]'
const roomOf = (share: string): number => (share === USED_UP ? 0 : 1024)

/** Until the reader has read what it can. */
const turn = async (): Promise<void> => {
  for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve))
}

interface World {
  name: string
  seeds: number
  keys: number
  shares: number
  /** How many rows of a share may be in the hub. */
  room: (seed: number) => number
  pauses: boolean
}

const WORLDS: readonly World[] = [
  { name: 'few keys', seeds: 60, keys: 6, shares: 5, room: (seed) => (seed % 5 === 0 ? 3 : 1024), pauses: false },
  { name: 'many keys, little room', seeds: 60, keys: 100, shares: 12, room: () => 6, pauses: false },
  { name: 'many keys, and pauses', seeds: 40, keys: 60, shares: 5, room: () => 1024, pauses: true },
]

for (const { name, seeds, keys, shares, room, pauses } of WORLDS)
  for (let seed = 1; seed <= seeds; seed++)
    test(`whatever comes, ends, or comes back, each is given in the end (${name}, seed ${seed})`, async () => {
      const source = new Random(seed)
      const random = (): number => source.next() / 2 ** 32
      const below = (limit: number): number => Math.floor(random() * limit)
      const store = new Rows()
      // Now and then one has no room: its rows, and then all, are read by turns.
      let narrow = ''
      let isPaused = false
      const hub = start(
        store,
        (share) => (share === narrow ? seed % 2 : room(seed)),
        () => isPaused,
      )
      const widen = (): void => {
        const share = narrow
        narrow = ''
        hub.reader.mayGoOn(1, share)
      }
      const pause = async (): Promise<void> => {
        for (let n = below(6); n > 0; n--) await Promise.resolve()
        isPaused = !isPaused
        if (!isPaused) return hub.reader.resume(1)
        for (let n = hub.inHub.length - 1; n >= 0; n--) if (random() < 0.7) hub.giveBack(n)
      }
      const add = (): void =>
        store.add(
          // Rows without a share are those of publishers that did not know the subscriber.
          seed % 2 === 0 && random() < 0.3 ? '' : `${below(3)}["${below(shares)}"]`,
          seed % 3 === 0 || random() < 0.5 ? null : `k${below(keys)}`,
        )
      for (let step = 0; step < 300; step++) {
        const what = random()
        if (what < 0.35) {
          for (let n = below(20); n >= 0; n--) add()
          hub.reader.rang('some')
        } else if (what < 0.65)
          for (let n = below(4); n >= 0 && hub.inHub.length > 0; n--) hub.end(below(hub.inHub.length))
        else if (what < 0.7 && hub.inHub.length > 0) hub.giveBack(below(hub.inHub.length))
        else for (let n = below(6); n >= 0 && hub.settling.length > 0; n--) hub.settle()
        if (random() < 0.06 && narrow === '') narrow = `1["${below(shares)}"]`
        else if (random() < 0.06 && narrow !== '') widen()
        if (pauses && random() < 0.1) await pause()
        if (random() < 0.3) await turn()
        else for (let n = below(12); n > 0; n--) await Promise.resolve()
      }
      if (isPaused) await pause()
      if (narrow !== '') widen()
      for (let idle = 0; store.rows.length > 0 && idle < 5; ) {
        await turn()
        idle = hub.inHub.length + hub.settling.length > 0 ? 0 : idle + 1
        while (hub.inHub.length > 0) hub.end(0)
        while (hub.settling.length > 0) hub.settle()
      }
      assert.equal(store.rows.length, 0, 'rows are left that nobody reads')
      hub.reader.end()
    })

test('of many shares with many rows each has some in the hub, and there is room for one that comes', async () => {
  const store = new Rows()
  for (let n = 0; n < 400; n++) for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) store.add(`1["${name}"]`)
  const hub = start(store)
  await turn()
  const of = (share: string): number => hub.inHub.filter(({ row }) => row.event.shares === share).length
  const shares = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => of(`1["${name}"]`))
  assert.ok(Math.min(...shares) > 60, shares.join(' '))
  assert.ok(hub.inHub.length < 1000, `${hub.inHub.length} are in the hub`)
  store.add('1["new"]')
  hub.reader.rang('some')
  await turn()
  assert.equal(of('1["new"]'), 1)
  hub.reader.end()
})

test('a share whose limit is used up is read when it may go on', async () => {
  const store = new Rows()
  for (let n = 0; n < 20; n++) store.add('1["a"]')
  let room = 2
  const hub = start(store, () => room)
  await turn()
  assert.equal(hub.given.length, 2)
  room = 0
  while (hub.inHub.length > 0) hub.end(0)
  while (hub.settling.length > 0) hub.settle()
  await turn()
  assert.equal(hub.given.length, 2)
  room = 2
  hub.reader.mayGoOn(1, '1["a"]')
  await turn()
  assert.equal(hub.given.length, 4)
  hub.reader.end()
})

test('rows behind many of a blocked key are found', async () => {
  const store = new Rows()
  store.add(USED_UP)
  for (let n = 0; n < 100; n++) store.add('1["a"]', 'blocked')
  store.parked.add('blocked')
  for (let n = 0; n < 3; n++) store.add('1["a"]')
  const hub = start(store, roomOf)
  await turn()
  assert.deepEqual(hub.given, [102, 103, 104])
  hub.reader.end()
})

test('many rows of a blocked key are looked at once, and not again with each event', async () => {
  const store = new Rows()
  store.add(USED_UP)
  for (let n = 0; n < 400; n++) store.add('1["a"]', 'blocked')
  store.parked.add('blocked')
  const hub = start(store, roomOf)
  await turn()
  assert.ok(store.looked >= 400, `${store.looked} looked at`)
  store.looked = 0
  for (let n = 0; n < 20; n++) {
    store.add('1["b"]')
    store.add('1["a"]')
    hub.reader.rang('some')
    await turn()
    while (hub.inHub.length > 0) hub.end(0)
    while (hub.settling.length > 0) hub.settle()
    await turn()
  }
  assert.equal(hub.given.length, 40)
  assert.ok(store.looked <= 200, `${store.looked} looked at again`)
  // One that comes back among them is read.
  store.parked.delete('blocked')
  hub.reader.late(1, 2, 'blocked')
  await turn()
  assert.equal(hub.given.at(-1), 2)
  hub.reader.end()
})

test('a key is read when its dead letter no longer blocks it, while shares take turns', async () => {
  const store = new Rows()
  store.add(USED_UP)
  const hub = start(store, roomOf)
  await turn()
  hub.reader.park(hub.cursor, 'blocked', 'letter', 2)
  store.parked.add('blocked')
  for (let n = 0; n < 3; n++) store.add('1["a"]', 'blocked')
  hub.reader.rang('some')
  await turn()
  assert.deepEqual(hub.given, [])
  store.parked.delete('blocked')
  hub.reader.unpark(1, 'letter')
  await turn()
  assert.deepEqual(hub.given, [2])
  hub.reader.end()
})

test('the next of a key is read when the one before has settled, whosever it is', async () => {
  const store = new Rows()
  store.add(USED_UP)
  for (const share of ['a', 'b', 'c']) store.add(`1["${share}"]`, 'k')
  const hub = start(store, roomOf)
  for (const n of [2, 3, 4]) {
    await turn()
    assert.equal(hub.given.at(-1), n)
    hub.end(0)
    await turn()
    hub.settle()
  }
  assert.deepEqual(hub.given, [2, 3, 4])
  hub.reader.end()
})

test('rows are read in their order while there is room for all, and again when turns have made room', async () => {
  const store = new Rows()
  const readShares = store.readShares.bind(store)
  let byTurns = 0
  store.readShares = (group, asks) => {
    byTurns++
    return readShares(group, asks)
  }
  const hub = start(store)
  const comes = async (): Promise<void> => {
    for (const share of ['a', 'b']) store.add(`1["${share}"]`, 'k')
    hub.reader.rang('some')
    await turn()
  }
  const ends = async (): Promise<void> => {
    while (hub.inHub.length > 0) hub.end(0)
    while (hub.settling.length > 0) hub.settle()
    await turn()
  }
  await comes()
  assert.deepEqual(hub.given, [1, 2])
  assert.equal(byTurns, 0)
  for (let n = 0; n < 2000; n++) store.add('1["a"]')
  await comes()
  assert.ok(byTurns > 0)
  assert.ok(hub.inHub.length < 1000, `${hub.inHub.length} of one are in the hub`)
  while (store.rows.length > 0) await ends()
  await comes()
  byTurns = 0
  await comes()
  assert.equal(byTurns, 0)
  assert.deepEqual(hub.given.slice(-4), [2005, 2006, 2007, 2008])
  hub.reader.end()
})

test('what came while the group was paused is read when it is resumed', async () => {
  const store = new Rows()
  let isPaused = true
  const hub = start(store, undefined, () => isPaused)
  for (const share of ['a', 'b']) store.add(`1["${share}"]`)
  hub.reader.rang('some')
  await turn()
  assert.deepEqual(hub.given, [])
  isPaused = false
  hub.reader.resume(1)
  await turn()
  assert.deepEqual(hub.given, [1, 2])
  hub.reader.end()
})
test('who has nothing in the hub has a turn while rows of others are asked for by name', async () => {
  const store = new Rows()
  for (let n = 0; n < 2000; n++) store.add('1["a"]', `k${n}`)
  const hub = start(store)
  await turn()
  store.add('1["b"]')
  hub.reader.rang('some')
  // There is always one that has just settled.
  for (let n = 0; n < 200 && !hub.inHub.some(({ row }) => row.event.shares === '1["b"]'); n++) {
    hub.end(0)
    hub.settle()
    await Promise.resolve()
  }
  assert.ok(hub.inHub.some(({ row }) => row.event.shares === '1["b"]'))
  hub.reader.end()
})

test('news in the middle of a round is for the shares before it, too', () => {
  const turns = new Turns()
  const many = Array.from({ length: 32 }, (_, n) => `1["${String(n).padStart(2, '0')}"]`)
  turns.turns()
  turns.turned([[], many, []], new Set(), 0)
  turns.news()
  turns.turns()
  turns.turned([[], ['1["last"]'], []], new Set(), 0)
  assert.equal(turns.isRead, false)
  turns.turns()
  turns.turned([[], many, []], new Set(), 0)
  turns.turns()
  turns.turned([[], ['1["last"]'], []], new Set(), 0)
  assert.equal(turns.isRead, true)
})

test('each priority goes first in some of the pages of a round', () => {
  const turns = new Turns()
  const shares = [['0?'], ['1?'], ['2?']]
  const firsts = new Set<string>()
  for (let n = 0; n < 16; n++) {
    turns.turns()
    firsts.add(turns.asks(shares, 1, 1, () => 1, 0)[0]!.share)
    turns.mayGoOn('1["other"]')
    turns.asks(turns.takeNamed().shares, 1, 1, () => 1, 0)
  }
  assert.deepEqual([...firsts].sort(), ['0?', '1?', '2?'])
})

test('many rows of one key hold up no other key of their share, also while one of them is handled', async () => {
  const store = new Rows()
  store.add(USED_UP)
  for (let n = 0; n < 100; n++) store.add('1["a"]', 'busy')
  const hub = start(store, roomOf)
  await turn()
  assert.deepEqual(hub.given, [2])
  store.add('1["a"]', 'other')
  hub.reader.rang('some')
  await until(() => hub.given.length === 2, 'the other one')
  assert.deepEqual(hub.given, [2, 102])
  hub.reader.end()
})
