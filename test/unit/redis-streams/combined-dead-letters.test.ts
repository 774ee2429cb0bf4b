import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeadLetter, DeadLetterPage } from '../../../src/contracts/event-bus.ts'
import { DeadLetterCollector, type DeadLetters } from '../../../src/primary/events/dead-letters.ts'
import { CombinedDeadLetters } from '../../../src/primary/redis-streams/combined-dead-letters.ts'
import type { StreamDeadLetters } from '../../../src/primary/redis-streams/dead-letters.ts'

const START_MS = 1_800_000_000_000
const inRedis = (ms: number, n = 0): string => `dl_${START_MS + ms}-${n}`
const inDatabase = (ms: number, n = 0): string =>
  `dl_${(START_MS + ms).toString(16).padStart(12, '0')}${String(n).padStart(20, '0')}`

const letterOf = (id: string, error = ''): DeadLetter => ({
  id,
  event: 'order.paid',
  event_id: 'evt_1',
  subscriber: 'shop.SendBill',
  error,
  attempts: 1,
  payload_keys: [],
  timestamp: new Date(START_MS).toISOString(),
  request_id: null,
})

/** @param letters the oldest first */
function storeOf(letters: readonly DeadLetter[], isBefore: (id: string, before: string) => boolean) {
  const asked: string[] = []
  const note = (what: string) => (id: string) => {
    asked.push(`${what} ${id}`)
    return true
  }
  return {
    asked,
    list: (wanted: DeadLetterPage) => {
      const page = new DeadLetterCollector(wanted)
      const { before } = wanted
      page.add([...letters].reverse().filter(({ id }) => before === undefined || isBefore(id, before)))
      return page.oldestFirst()
    },
    payload: (id: string) => `payload of ${id}`,
    replay: note('replay'),
    delete: note('delete'),
    edit: note('edit'),
  }
}

const entryOf = (id: string): [number, number] => {
  const [ms, n] = id.slice(3).split('-')
  return [Number(ms), Number(n)]
}
const isOlderEntry = (id: string, before: string): boolean => {
  const [[ms, n], [beforeMs, beforeN]] = [entryOf(id), entryOf(before)]
  return ms < beforeMs || (ms === beforeMs && n < beforeN)
}

function bothOf(redis: readonly DeadLetter[], database: readonly DeadLetter[]) {
  const [ofRedis, ofDatabase] = [storeOf(redis, isOlderEntry), storeOf(database, (id, before) => id < before)]
  const both = new CombinedDeadLetters(ofRedis as unknown as StreamDeadLetters, ofDatabase as unknown as DeadLetters)
  return { both, ofRedis, ofDatabase }
}

test('dead letters of both stores: pages have each of them once, in the order of their times', async () => {
  const redis = [1, 3, 3, 5, 8].map((ms, n) => letterOf(inRedis(ms, n)))
  const database = [2, 3, 3, 4, 8, 9].map((ms, n) => letterOf(inDatabase(ms, n)))
  const { both } = bothOf(redis, database)
  const all = (await both.list()).map(({ id }) => id)
  assert.deepEqual([...all].sort(), [...redis, ...database].map(({ id }) => id).sort())
  for (let limit = 1; limit <= all.length; limit++) {
    const paged: string[] = []
    for (let before: string | undefined; ; before = paged[0]) {
      const page = (await both.list(before === undefined ? { limit } : { limit, before })).map(({ id }) => id)
      if (page.length === 0) break
      paged.unshift(...page)
    }
    assert.deepEqual(paged, all, `pages of ${limit}`)
  }
})

test('dead letters of both stores: a page that is full of bytes leaves out none that is newer than its oldest', async () => {
  const large = 'x'.repeat(1_500_000)
  const redis = [1, 3, 5, 7, 9].map((ms) => letterOf(inRedis(ms), large))
  const database = [2, 4, 6, 8].map((ms) => letterOf(inDatabase(ms)))
  const { both } = bothOf(redis, database)
  const paged: string[] = []
  for (let before: string | undefined; ; before = paged[0]) {
    const page = await both.list(before === undefined ? {} : { before })
    if (page.length === 0) break
    paged.unshift(...page.map(({ id }) => id))
  }
  const inOrder = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((ms) => (ms % 2 === 1 ? inRedis(ms) : inDatabase(ms)))
  assert.deepEqual(paged, inOrder)
})

test('dead letters of both stores: each is handled by the store that its id names, and one in Redis is not edited', async () => {
  const { both, ofRedis, ofDatabase } = bothOf([], [])
  for (const id of [inRedis(1), inDatabase(1), 'dl_unknown']) {
    assert.equal(await both.payload(id), `payload of ${id}`)
    assert.equal(await both.replay(id), true)
    assert.equal(await both.delete(id), true)
  }
  assert.deepEqual(ofRedis.asked, [`replay ${inRedis(1)}`, `delete ${inRedis(1)}`])
  assert.equal(ofDatabase.asked.length, 4)
  assert.equal(await both.edit(inDatabase(1), '{}', ''), true)
  await assert.rejects(both.edit(inRedis(1), '{}', ''), { code: 'EVENT_OPTIONS_INVALID' })
})
