import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Heddle, type LogLine, startHeddle } from '../support/heddle.ts'
import { until } from '../support/until.ts'

const DOMAINS = [fileURLToPath(new URL('../fixtures/events', import.meta.url))]
const LANES = 3

interface Seen extends LogLine {
  by: string
  thread: number
  /** When it was logged, milliseconds since the epoch with their fractions. */
  atMs: number
  tag: unknown
  n: number
  // biome-ignore lint/suspicious/noExplicitAny: whatever the test has published
  data: any
  // biome-ignore lint/suspicious/noExplicitAny: the event's meta data
  event: any
}

function post(heddle: Heddle, path: string, body: unknown = {}) {
  return heddle
    .json(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    .then((answer) => {
      assert.equal(answer.status, 200, JSON.stringify(answer.body))
      return answer.body
    })
}

const seen = (heddle: Heddle, name: string, tag?: string): Seen[] =>
  heddle.logs.filter(({ msg, tag: of }) => msg === name && (tag === undefined || of === tag)) as Seen[]

const seenOften = (heddle: Heddle, name: string, tag: string | undefined, count: number) =>
  until(() => seen(heddle, name, tag).length >= count, `${count} of ${name} ${tag ?? ''}`)

/** An event of its own that has gone all the way: whatever was published before it would have arrived too. */
async function settled(heddle: Heddle): Promise<void> {
  await until(async () => (await heddle.json('/history')).status === 200, 'an answer')
  await new Promise((resolve) => setTimeout(resolve, 60))
}

/**
 * What every transport of events does, over three lanes and the primary of one process.
 * @param environment of a process that has the transport; null when it cannot be had, and the test has been skipped
 */
export function runBusContract(
  name: string,
  environment: (t: TestContext) => Promise<Record<string, string> | null>,
): void {
  test(`the bus contract: ${name}`, async (t) => {
    const env = await environment(t)
    if (env === null) return
    const heddle = await startHeddle(t, { domains: DOMAINS, lanes: LANES, env })

    for (const from of ['/publish', '/primary/publish']) {
      await t.test(`an event reaches each subscriber once, whatever the number of lanes (${from})`, async () => {
        const tag = `once${from}`
        const ids = new Set<string>()
        for (let n = 0; n < 20; n++) ids.add((await post(heddle, from, { event: 'plain', payload: { tag, n } })).id)
        assert.equal(ids.size, 20)
        await seenOften(heddle, 'plain', tag, 60)
        await settled(heddle)
        const all = seen(heddle, 'plain', tag)
        for (const by of ['watch', 'watch-too', 'primary']) {
          assert.equal(all.filter((line) => line.by === by).length, 20, by)
        }
        for (const { event } of all.filter(({ by }) => by === 'watch')) {
          assert.ok(ids.has(event.id))
          assert.match(event.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
          assert.equal(event.attempt, 1)
          assert.equal(event.event, 'plain')
          assert.equal(event.emitter, from === '/publish' ? 'bus.Drive' : 'bus.DrivePrimary')
        }
      })
    }

    await t.test('subscribers of one group share the events alike', async () => {
      for (let n = 0; n < 20; n++) await post(heddle, '/publish', { event: 'grouped', payload: { tag: 'g', n } })
      await seenOften(heddle, 'grouped', 'g', 20)
      await settled(heddle)
      const numbers = seen(heddle, 'grouped', 'g').map(({ n }) => n)
      assert.deepEqual(
        numbers.sort((a, b) => a - b),
        Array.from({ length: 20 }, (_, n) => n),
      )
      // In each thread they take turns.
      const first = seen(heddle, 'grouped', 'g').filter(({ by }) => by === 'watch').length
      assert.ok(Math.abs(20 - 2 * first) <= LANES, `${first} of 20`)
    })

    await t.test('a broadcast reaches every lane', async () => {
      await post(heddle, '/publish', { event: 'wide', payload: { tag: 'w' } })
      await seenOften(heddle, 'wide', 'w', LANES)
      await settled(heddle)
      const threads = seen(heddle, 'wide', 'w').map(({ thread }) => thread)
      assert.equal(threads.length, LANES)
      assert.equal(new Set(threads).size, LANES)
    })

    await t.test('a failed attempt is repeated with the next number until it succeeds', async () => {
      await post(heddle, '/publish', { event: 'failing', payload: { tag: 'twice', failures: 2 } })
      await seenOften(heddle, 'failing', 'twice', 3)
      assert.deepEqual(
        seen(heddle, 'failing', 'twice').map(({ event }) => event.attempt),
        [1, 2, 3],
      )
      await settled(heddle)
      assert.equal(seen(heddle, 'failing', 'twice').length, 3)
      const { body } = await heddle.json('/dead-letters')
      assert.deepEqual(body.letters, [])
    })

    await t.test('the last failure goes to the listeners, then to the dead letters', async () => {
      // Retries and replays bring the text as it was published.
      const tag = 'dead, ü and €'
      const { id } = await post(heddle, '/publish', {
        event: 'failing',
        payload: { tag, failures: 9, secret: 's' },
      })
      const line = await until(
        () =>
          heddle.logs.find(
            ({ msg, failure }) => msg === 'failure' && (failure as { event_id: string }).event_id === id,
          ),
        'the failure listener',
      )
      assert.deepEqual(line.failure, {
        event: 'failing',
        event_id: id,
        subscriber: 'bus.Watch',
        error: 'attempt 3 failed',
        attempts: 3,
      })
      assert.equal(line.isStored, false, 'listeners come before the store')
      const letters = await until(async () => {
        const { body } = await heddle.json('/dead-letters')
        return body.letters.length > 0 ? body.letters : undefined
      }, 'the letter')
      assert.equal(letters.length, 1)
      assert.equal(letters[0].event_id, id)
      assert.equal(letters[0].attempts, 3)
      assert.deepEqual(letters[0].payload_keys, ['tag', 'failures', 'secret'])
      assert.doesNotMatch(JSON.stringify(letters), /"s"/)
      const follow = await until(
        () => (seen(heddle, 'failure.seen') as Seen[]).find(({ data }) => data.of === id),
        'what the listener has published',
      )
      assert.equal(follow.event.parent_id, id, 'caused by the event that failed')

      assert.equal((await post(heddle, `/dead-letters/${letters[0].id}/replay`)).done, true)
      await seenOften(heddle, 'failing', tag, 6)
      assert.equal(
        (await post(heddle, `/dead-letters/${letters[0].id}/replay`)).done,
        false,
        'it is not there any more',
      )
      const again = await until(async () => (await heddle.json('/dead-letters')).body.letters[0], 'it failed again')
      const answer = await heddle.json(`/dead-letters/${again.id}`, { method: 'DELETE' })
      assert.equal(answer.body.done, true)
      assert.deepEqual((await heddle.json('/dead-letters')).body.letters, [])
    })

    await t.test('a subscriber that does not finish in time has failed', async () => {
      const { id } = await post(heddle, '/publish', { event: 'hanging', payload: { tag: 'h' } })
      const line = await until(
        () =>
          heddle.logs.find(
            ({ msg, failure }) => msg === 'failure' && (failure as { event_id: string }).event_id === id,
          ),
        'the time-out',
      )
      assert.match((line.failure as { error: string }).error, /did not finish within 100 ms/)
    })

    await t.test(
      'an error with details that are no JSON, or from a thenable, is a failure like any other',
      async () => {
        for (const kind of ['sync', 'async', 'thenable']) {
          const { id } = await post(heddle, '/publish', { event: 'thrown', payload: { kind } })
          const line = await until(
            () =>
              heddle.logs.find(
                ({ msg, failure }) => msg === 'failure' && (failure as { event_id: string }).event_id === id,
              ),
            `the failure of ${kind}`,
            3000,
          )
          assert.equal((line.failure as { error: string }).error, `thrown ${kind}`)
        }
        assert.deepEqual(
          heddle.logs.filter(({ identity }) => identity === 'supervisor'),
          [],
          'no lane died of it',
        )
      },
    )

    await t.test('events of one key are handled one after another, in their order, over all lanes', async () => {
      const count = 400
      const keys = 5
      await post(heddle, '/publish-many', { event: 'keyed', count, keys, payload: { tag: 'k' } })
      await seenOften(heddle, 'keyed-ends', 'k', count)
      const lines = heddle.logs.filter(({ msg, tag }) => msg.startsWith('keyed-') && tag === 'k') as Seen[]
      lines.sort((a, b) => a.atMs - b.atMs)
      assert.equal(lines.length, 2 * count)
      for (let key = 0; key < keys; key++) {
        const ofKey = lines.filter(({ n }) => n % keys === key).map(({ msg, n }) => `${msg} ${n}`)
        const expected = Array.from({ length: count / keys }, (_, n) => n * keys + key)
        assert.deepEqual(
          ofKey,
          expected.flatMap((n) => [`keyed-begins ${n}`, `keyed-ends ${n}`]),
        )
      }
      assert.ok(new Set(lines.map(({ thread }) => thread)).size > 1, 'more lanes than one had a share')
    })

    await t.test('a delayed event comes not before its time', async () => {
      const startedMs = Date.now()
      await post(heddle, '/publish', { event: 'plain', payload: { tag: 'delayed' }, options: { delayMs: 250 } })
      await seenOften(heddle, 'plain', 'delayed', 3)
      assert.ok(Date.now() - startedMs >= 249)
    })

    await t.test('the lifetime of a delayed event begins when the delay is over', async () => {
      const options = { delayMs: 400, ttlMs: 300 }
      await post(heddle, '/publish', { event: 'plain', payload: { tag: 'late' }, options })
      await seenOften(heddle, 'plain', 'late', 3)
    })

    await t.test('an event that nobody has begun in its lifetime is not delivered any more', async () => {
      const options = { key: 'one' }
      await post(heddle, '/publish', { event: 'keyed', payload: { tag: 'ttl', n: 1, ms: 300 }, options })
      await post(heddle, '/publish', {
        event: 'keyed',
        payload: { tag: 'ttl', n: 2, ms: 0 },
        options: { ...options, ttlMs: 50 },
      })
      await post(heddle, '/publish', {
        event: 'keyed',
        payload: { tag: 'ttl', n: 3, ms: 0 },
        options: { ...options, ttlMs: 60_000 },
      })
      await seenOften(heddle, 'keyed-ends', 'ttl', 2)
      assert.deepEqual(
        seen(heddle, 'keyed-ends', 'ttl').map(({ n }) => n),
        [1, 3],
      )
    })

    await t.test('a lifetime does not cut off the retries of what was begun in time', async () => {
      // Full jitter: some of the pauses are longer than the lifetime.
      for (let n = 0; n < 8; n++)
        await post(heddle, '/publish', { event: 'mortal', payload: { tag: 'm', n }, options: { ttlMs: 300 } })
      await until(
        () => seen(heddle, 'mortal', 'm').filter(({ event }) => event.attempt === 2).length === 8,
        'all retries',
      )
    })

    for (const from of ['/request', '/primary/request']) {
      await t.test(`a request gets the first object that a subscriber returns (${from})`, async () => {
        const { reply } = await post(heddle, from, { event: 'ask.object', payload: { a: [1, { b: 'ü' }] } })
        assert.deepEqual(reply.got, { a: [1, { b: 'ü' }] })
        assert.deepEqual((await post(heddle, from, { event: 'ask.second' })).reply, { from: 'third' })
        assert.deepEqual((await post(heddle, from, { event: 'ask.primary' })).reply, { from: 'primary' })
        assert.equal((await post(heddle, from, { event: 'ask.large' })).reply.text.length, 500_000)
      })

      await t.test(
        `a request that nobody can answer is refused at once, one that nobody does after its time (${from})`,
        async () => {
          assert.equal((await post(heddle, from, { event: 'ask.nobody' })).code, 'EVENT_BUS_NO_SUBSCRIBER')
          assert.equal(
            (await post(heddle, from, { event: 'ask.never', timeoutMs: 80 })).code,
            'EVENT_BUS_REQUEST_TIMEOUT',
          )
          assert.equal(
            (await post(heddle, from, { event: 'left' })).code,
            'EVENT_BUS_NO_SUBSCRIBER',
            'it unsubscribed in onBoot',
          )
        },
      )
    }

    await t.test('a request whose subscribers have all failed gets the error of the last', async () => {
      const { message, tookMs, isHeddleError } = await post(heddle, '/request', { event: 'ask.throws' })
      assert.equal(message, 'not today')
      assert.ok(tookMs < 1500, `only after ${tookMs} ms`)
      assert.equal(isHeddleError, true)
    })

    await t.test('a reply that is no JSON ends the request, not the lane', async () => {
      for (const kind of ['bigint', 'toJSON']) {
        const { code } = await post(heddle, '/request', { event: 'ask.odd', payload: { kind }, timeoutMs: 300 })
        assert.equal(typeof code, 'string')
      }
      assert.deepEqual(
        heddle.logs.filter(({ identity }) => identity === 'supervisor'),
        [],
      )
    })

    await t.test('a payload that is no JSON object is refused with its code', async () => {
      for (const kind of ['array', 'null', 'undefined', 'text', 'map', 'bigint', 'cyclic']) {
        assert.deepEqual(await post(heddle, `/publish-fault/${kind}`), { code: 'EVENT_PAYLOAD_INVALID' }, kind)
      }
      assert.deepEqual(await post(heddle, '/publish-fault/large'), { code: 'EVENT_PAYLOAD_TOO_LARGE' })
    })

    await t.test('payloads up to 1 MiB arrive whole', async () => {
      const sizes = [0, 64, 20_000, 65_472, 65_536, 70_016, 400_000, (1 << 20) - 128]
      const ids = new Map<string, number>()
      for (const bytes of sizes) ids.set((await post(heddle, '/publish-large', { bytes })).id, bytes)
      const lines = await until(() => {
        const found = seen(heddle, 'large')
        return found.length >= sizes.length ? found : undefined
      }, 'all sizes')
      for (const { event, length, isWhole } of lines) {
        assert.equal(length, Math.floor(ids.get(event.id)! / 64) * 64)
        assert.equal(isWhole, true)
      }
    })

    await t.test('a subscription made after the boot works, and ends when it is left', async () => {
      const { thread } = await post(heddle, '/subscribe-later')
      await until(
        async () => (await heddle.json('/topology')).body.topology.later?.subscribers.length === 1,
        'the instance',
      )
      for (let n = 0; n < 5; n++) await post(heddle, '/publish', { event: 'later', payload: { tag: 'on', n } })
      await seenOften(heddle, 'later', 'on', 5)
      assert.deepEqual([...new Set(seen(heddle, 'later', 'on').map((line) => line.thread))], [thread])
      // Least loaded: with nothing else going on it is the same lane again, or else we ask until it was.
      await until(async () => (await post(heddle, '/unsubscribe-later')).thread === thread, 'the lane that subscribed')
      await until(async () => (await heddle.json('/topology')).body.topology.later.subscribers.length === 0, 'nobody')
      await post(heddle, '/publish', { event: 'later', payload: { tag: 'off' } })
      await settled(heddle)
      assert.deepEqual(seen(heddle, 'later', 'off'), [])
    })

    await t.test("a lane's listener hears its own events at once, others' soon, and each once", async () => {
      const published: string[] = []
      for (let n = 0; n < 12; n++) {
        const { id, atOnce } = await post(heddle, '/publish-heard')
        assert.equal(atOnce, 1)
        published.push(id)
      }
      published.push((await post(heddle, '/primary/publish', { event: 'heard', payload: {} })).id)
      const lastMs = Date.now()
      const perThread = new Map<number, string[]>()
      await until(async () => {
        // At once, and each for a while: so that every lane gets one.
        const answers = await Promise.all(Array.from({ length: LANES }, () => heddle.json('/heard')))
        for (const { body } of answers) perThread.set(body.thread, body.ids)
        return perThread.size === LANES && [...perThread.values()].every((list) => list.length >= published.length)
      }, 'all lanes have heard all')
      assert.ok(Date.now() - lastMs < 1000, 'soon')
      for (const ids of perThread.values()) assert.deepEqual([...ids].sort(), [...published].sort())
    })

    await t.test('the history and the topology tell names, never values', async () => {
      const { records } = (await heddle.json('/history')).body
      assert.ok(records.length <= 500)
      assert.doesNotMatch(JSON.stringify(records), /"s"/)
      const record = records.find(({ event }: { event: string }) => event === 'wide')
      assert.ok(record === undefined || record.payload_keys[0] === 'tag')
      const { topology } = (await heddle.json('/topology')).body
      assert.deepEqual(topology.grouped, {
        emitters: ['bus.Drive'],
        subscribers: topology.grouped.subscribers,
        fire_count: 20,
      })
      assert.deepEqual([...topology.grouped.subscribers].sort(), ['bus.Watch', 'bus.WatchToo'])
    })

    await t.test('subscribers that never finish do not use up a lane', async () => {
      await post(heddle, '/publish-many', { event: 'hanging', count: LANES * 1024 + 50, payload: { tag: 'flood' } })
      await post(heddle, '/publish', { event: 'plain', payload: { tag: 'after-the-flood' } })
      await seenOften(heddle, 'plain', 'after-the-flood', 3)
    })

    assert.equal(await heddle.stop(), 0)
  })

  test('a full queue refuses, and what it has taken is all delivered', async (t) => {
    const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 2, env: { EVENT_BUS_MAX_QUEUE: '100' } })
    const { taken, refused } = await post(heddle, '/publish-many', {
      event: 'counted',
      count: 1000,
      payload: { ms: 200 },
    })
    assert.ok(taken.length >= 100 && refused.length > 0, `${taken.length} taken`)
    assert.deepEqual(new Set(refused), new Set(['EVENT_BUS_FULL']))
    await until(() => seen(heddle, 'counted').length >= taken.length, 'all that were taken')
    assert.deepEqual(
      seen(heddle, 'counted')
        .map(({ n }) => n)
        .sort((a, b) => a - b),
      taken.sort((a: number, b: number) => a - b),
    )
    const again = await post(heddle, '/publish-many', { event: 'counted', count: 50 })
    assert.equal(again.taken.length, 50, 'there is room again')
  })
}
