import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { LaneSet, LaneSlot, type LaneThread } from '../../../src/primary/supervision/lane-set.ts'
import { laneOf, replacementOf } from '../../support/fake-lane.ts'
import type { Heddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { lanesOf as allLanesOf, boxesOf, deathsIn, publish, startDeadly } from './deadly.ts'

/** Long enough for a relief to start on a machine that is busy. What stands still waits: a loop would cost the processor as long. */
const STALL_MS = 6000

/** Without the lane in which a plugin is tried that stood still. */
const lanesOf = async (heddle: Heddle) => (await allLanesOf(heddle)).filter(({ role }) => role !== 'probation')

test('where all lanes stand still one of them has a relief soon, and the others later', async (t) => {
  const threads = [0, 1].map((index) => Object.assign(laneOf(t, { index }), { watchdog: { ownMs: 0 }, isLost: false }))
  const lanes = new LaneSet(threads.length)
  lanes.slots.push(...threads.map((thread) => new LaneSlot(thread as unknown as LaneThread)))
  const { replacement, started } = replacementOf(lanes)
  const look = async (ownMs: number): Promise<number[]> => {
    for (const { thread } of lanes.slots) {
      Object.assign(thread.watchdog, { ownMs })
      if (!thread.responsive) replacement.onStill(thread)
    }
    await nextTurn()
    return [...started]
  }
  threads[0]!.responsive = false
  assert.deepEqual(await look(900), [], 'the other works')
  threads[1]!.responsive = false
  assert.deepEqual(await look(100), [], 'too soon')
  assert.deepEqual(await look(300), [0])
  assert.deepEqual(await look(900), [0])
  assert.deepEqual(await look(1000), [0, 1])
})

describe('a lane that stands still', () => {
  // One each: who has stood still is tried elsewhere for a while.
  const start = (t: TestContext, stallMs = STALL_MS) =>
    startDeadly(t, { lanes: 1, env: { LANE_STALL_MS: String(stallMs) } })

  test('what a lane wrote before it stood still is read at once', async (t) => {
    const heddle = await start(t)
    // Two requests in one drain: the answer of the first is written and cannot be rung for.
    const sockets = await Promise.all(
      ['/peace', '/block?ms=3000'].map(async (path) => {
        const socket = connect(heddle.port, '127.0.0.1')
        await new Promise((resolve) => socket.once('connect', resolve))
        return {
          socket,
          path,
          answeredMs: new Promise<number>((resolve) => socket.once('data', () => resolve(Date.now()))),
        }
      }),
    )
    const sentMs = Date.now()
    for (const { socket, path } of sockets) socket.write(`GET ${path} HTTP/1.1\r\nhost: test\r\n\r\n`)
    const [first, second] = await Promise.all(sockets.map(({ answeredMs }) => answeredMs))
    for (const { socket } of sockets) socket.destroy()
    assert.ok(second! - sentMs >= 3000)
    assert.ok(first! - sentMs < 2000, `answered after ${first! - sentMs} ms`)
  })

  test('a lane that is full of requests and answers one after another has no relief', async (t) => {
    const heddle = await start(t)
    let answers = 0
    const requests = Array.from({ length: 80 }, async () => {
      const { status } = await heddle.json('/block?ms=40')
      answers++
      return status
    })
    // More than three seconds of work, of which the lane finds all but the first request in its ring.
    while (answers < requests.length) {
      assert.deepEqual(
        (await lanesOf(heddle)).map(({ role }) => role),
        ['regular'],
        `after ${answers} answers`,
      )
      await sleep(50)
    }
    assert.deepEqual(new Set(await Promise.all(requests)), new Set([200]))
  })

  test('a lane that goes on keeps its place, and the relief leaves', async (t) => {
    const heddle = await start(t, 100_000)
    const id = await publish(heddle, 'peace.asked', { ms: 100 })
    // On a busy machine the relief may be late: then the lane stands still for longer.
    for (let ms = 4000, isRelieved = false; !isRelieved; ms *= 2) {
      let isOver = false
      const slow = heddle.json(`/block?ms=${ms}`).finally(() => {
        isOver = true
      })
      assert.equal((await heddle.json('/peace')).status, 200)
      await until(async () => {
        isRelieved = (await lanesOf(heddle))[1]?.role === 'relief'
        return isRelieved || isOver
      }, 'the relief')
      assert.equal((await slow).status, 200, 'it was not lost')
    }
    await until(() => heddle.logs.some(({ msg, event }) => msg === 'peace ends' && event === id), 'its event')
    assert.equal(deathsIn(heddle).length, 0)
    await until(async () => (await lanesOf(heddle)).length === 1, 'the relief leaves')
    assert.equal((await lanesOf(heddle))[0]!.restarts, 0)
  })

  test('a lane that stands still has a relief long before it is ended, and the relief stays', async (t) => {
    const heddle = await start(t)
    const guilty = heddle.json('/harm/block')
    await until(() => heddle.logs.some(({ msg }) => msg === 'harm begins'), 'the block')
    // A request that comes before it has begun is answered by the lane itself.
    await until(async () => (await lanesOf(heddle))[0]?.responsive === false, 'the standstill')
    assert.equal((await heddle.json('/peace')).status, 200, 'another request is answered')
    // On a busy machine it may be late for a moment itself.
    await until(async () => (await lanesOf(heddle))[1]?.responsive, 'the relief')
    assert.equal(deathsIn(heddle).length, 0, 'while it still stands')
    assert.deepEqual(
      (await lanesOf(heddle)).map(({ index, role, state, responsive }) => [index, role, state, responsive]),
      [
        [0, 'regular', 'ready', false],
        [0, 'relief', 'ready', true],
      ],
    )
    assert.equal((await guilty).status, 504)
    const [box] = await boxesOf(heddle)
    assert.equal(box!.reason, 'stalled')
    assert.ok(box!.stood_still_ms >= STALL_MS)
    const after = await lanesOf(heddle)
    assert.deepEqual([after.length, after[0]!.restarts, after[0]!.state], [1, 1, 'ready'], 'the relief has the place')
  })
})
