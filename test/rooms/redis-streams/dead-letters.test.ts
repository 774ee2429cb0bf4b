import assert from 'node:assert/strict'
import { type StreamDeadLetter, StreamDeadLetters } from '../../../src/primary/redis-streams/dead-letters.ts'
import { DEAD_STREAM, streamOf } from '../../../src/runtime/redis-streams/keys.ts'
import { ensureGroup } from '../../../src/runtime/redis-streams/stream-commands.ts'
import { addNumbers, deliver, entriesIn, pendingOf, streamTests } from './fixture.ts'

const testOnStreams = streamTests()
const STREAM = streamOf('order.paid')

function letter(n: number, more: Partial<StreamDeadLetter> = {}): StreamDeadLetter {
  return {
    envelope: JSON.stringify({ id: `evt_${n}`, payload_keys: ['n'], request_id: n % 2 ? `req_${n}` : null }),
    payload: JSON.stringify({ n }),
    event: 'order.paid',
    group: 'g',
    subscriber: 'shop.SendBill',
    error: `no paper ☃ ${n}`,
    attempts: 3,
    blackBox: null,
    ...more,
  }
}

testOnStreams('entries that are no letters break nothing and stay', async ({ redis }) => {
  const letters = new StreamDeadLetters(redis, { onCut: () => assert.fail() })
  const strange = [
    ['x', 'y'],
    ['e', 'no json', 'event', 'a', 'subscriber', 'b', 'error', 'c', 'attempts', '1'],
    ['e', '[]', 'event', 'a', 'subscriber', 'b', 'error', 'c', 'attempts', '1'],
    ['e', '{"id":1,"payload_keys":{}}', 'event', 'a', 'subscriber', 'b', 'error', 'c', 'attempts', '1'],
    ['e', '{"id":"i","payload_keys":[]}', 'event', 'a', 'subscriber', 'b', 'error', 'c', 'attempts', 'many'],
    ['__proto__', 'x', 'e', 'null'],
  ]
  for (const fields of strange) await redis.command('xadd', [DEAD_STREAM, '*', ...fields])
  const id = (await letters.add(letter(1)))!
  const stranger = (await entriesIn(redis, DEAD_STREAM))[0]!.id
  await redis.command('xadd', [DEAD_STREAM, '18446744073709551615-1', 'e', letter(2).envelope, 'event', 'a'])
  assert.deepEqual(
    (await letters.list()).map((listed) => listed.id),
    [id],
  )
  assert.equal(await letters.replay(`dl_${stranger}`), false)
  assert.equal((await entriesIn(redis, DEAD_STREAM)).length, strange.length + 2)
})

testOnStreams('the list shows the newest 1000', async (store) => {
  const letters = new StreamDeadLetters(store.redis, { onCut: () => assert.fail() })
  const ids = await Promise.all(Array.from({ length: 1234 }, (_, n) => letters.add(letter(n))))
  const list = await letters.list()
  assert.deepEqual(
    list.map(({ id }) => id),
    ids.slice(-1000),
  )
})

testOnStreams('old letters are dropped for new ones, and that is told', async (store) => {
  let cut = 0
  const letters = new StreamDeadLetters(store.redis, {
    max: 100,
    onCut: (count) => {
      cut += count
    },
  })
  await Promise.all(Array.from({ length: 1000 }, (_, n) => letters.add(letter(n))))
  const left = await store.redis.command<number>('xlen', [DEAD_STREAM])
  assert.ok(left >= 100 && left < 300, String(left))
  assert.equal(left + cut, 1000)
})

testOnStreams(
  'a letter acknowledges its entry in the same step, and a repeated call stores nothing',
  async ({ redis }) => {
    const letters = new StreamDeadLetters(redis, { onCut: () => assert.fail() })
    await ensureGroup(redis, STREAM, 'g', '$')
    const [entryId] = await addNumbers(redis, STREAM, 1)
    await deliver(redis, STREAM, 'g', 'c', 1)
    const entry = { stream: STREAM, group: 'g', entryId: entryId! }
    const ids = await Promise.all([1, 2, 3].map(() => letters.add(letter(1), entry)))
    assert.deepEqual(ids.slice(1), [null, null])
    assert.deepEqual(
      (await letters.list()).map(({ id }) => id),
      [ids[0]],
    )
    assert.deepEqual(await pendingOf(redis, STREAM, 'g'), [])
  },
)

testOnStreams('a letter is stored also when its group is gone', async (store) => {
  const letters = new StreamDeadLetters(store.redis, { onCut: () => assert.fail() })
  const id = await letters.add(letter(1), { stream: STREAM, group: 'g', entryId: '1-0' })
  assert.deepEqual(
    (await letters.list()).map((listed) => listed.id),
    [id],
  )
})

testOnStreams('a letter whose group is gone is not replayed, and stays', async (store) => {
  const letters = new StreamDeadLetters(store.redis, { onCut: () => assert.fail() })
  const id = (await letters.add(letter(1)))!
  assert.equal(await letters.replay(id), false)
  await ensureGroup(store.redis, STREAM, 'another', '$')
  assert.equal(await letters.replay(id), false)
  assert.equal((await letters.list()).length, 1)
  assert.equal(await letters.replay('dl_1-1'), false)
})

testOnStreams('letters take so many bytes at most, the newest always stays, and the list has pages', async (store) => {
  let cut = 0
  const letters = new StreamDeadLetters(store.redis, {
    maxBytes: 20_000,
    onCut: (count) => {
      cut += count
    },
  })
  const ids: (string | null)[] = []
  for (let n = 0; n < 50; n++) ids.push(await letters.add(letter(n, { payload: 'x'.repeat(1000) })))
  const kept = (await letters.list()).map(({ id }) => id)
  assert.ok(kept.length >= 14 && kept.length < 20, String(kept.length))
  assert.deepEqual(kept, ids.slice(-kept.length))
  assert.equal(cut, 50 - kept.length)

  const newest = (await letters.list({ limit: 5 })).map(({ id }) => id)
  assert.deepEqual(newest, kept.slice(-5))
  const before = (await letters.list({ limit: 5, before: newest[0]! })).map(({ id }) => id)
  assert.deepEqual(before, kept.slice(-10, -5))
  assert.deepEqual(await letters.list({ before: kept[0]! }), [])

  // What is deleted at the end counts no more.
  for (const id of kept.slice(-5)) await letters.delete(id)
  cut = 0
  for (let n = 0; n < 5; n++) await letters.add(letter(n, { payload: 'x'.repeat(1000) }))
  assert.equal(cut, 0)

  const large = await letters.add(letter(1, { payload: 'x'.repeat(100_000) }))
  assert.deepEqual(
    (await letters.list()).map(({ id }) => id),
    [large],
  )
})
