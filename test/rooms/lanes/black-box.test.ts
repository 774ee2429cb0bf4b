import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { BlackBox } from '../../../src/contracts/registry.ts'
import type { Heddle, LogLine } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { allUp, boxesOf, deathsIn, publish, shareDeadly, startDeadly } from './deadly.ts'

const HARM = 'test/fixtures/deadly/harm/plugins/do-harm.ts'

/** `file:line` of the first line of the fixture that has this text. */
async function lineOf(text: string): Promise<string> {
  const path = fileURLToPath(new URL('../../fixtures/deadly/harm/plugins/do-harm.ts', import.meta.url))
  const lines = (await readFile(path, 'utf8')).split('\n')
  return `${HARM}:${lines.findIndex((line) => line.includes(text)) + 1}:`
}

/** Longer than a busy machine holds a lane up, and long enough for one that loops to use some of the processor there. */
const STALL_MS = 1500
const LANE_MEMORY_MB = 64
const GREW = /grew by more than 128 MiB while it stood still/

type Way = readonly [way: string, reason: string, status: number, message: RegExp, guiltyCode: string]
/** As many as one service survives without a pause: with the last of them the plugin is set aside. */
const AT_ONCE: readonly Way[] = [
  ['spin', 'stalled', 504, /stood still for \d+ ms/, 'for (;;) leak.kept.length = 0'],
  ['regex', 'stalled', 504, /stood still/, '/^(a+)+$/'],
  ['throw', 'crashed', 500, /^thrown by a timer$/, "throw new TypeError('thrown by a timer')"],
  ['reject', 'crashed', 500, /^rejected by nobody$/, "Promise.reject(new Error('rejected by nobody'))"],
  ['exit', 'exited', 500, /process\.exit\(3\) was called/, 'return process.exit(3)'],
]
const BY_MEMORY: readonly Way[] = [
  ['heap', 'memory', 500, GREW, 'leak.kept.push({ n: leak.kept.length'],
  ['strings', 'memory', 500, GREW, 'Array.from({ length: 1000 }'],
  ['map', 'memory', 500, GREW, 'map.set(n'],
  ['copies', 'memory', 500, GREW, 'leak.kept.push(list.concat(list))'],
  ['buffers', 'memory', 500, GREW, 'Buffer.alloc(1 << 20, 1)'],
]

function testWay(heddleOf: () => Heddle, [way, reason, status, message, code]: Way): void {
  test(`a handler that ends its lane (${way}) costs its own request, and the report names its line`, {
    timeout: 120_000,
  }, async () => {
    const heddle = heddleOf()
    const id = `the-${way}`
    const diedBefore = new Set((await boxesOf(heddle)).map(({ at }) => at))
    const loggedBefore = deathsIn(heddle).length
    const answer = await heddle.json(`/harm/${way}`, { headers: { 'x-request-id': id } })
    assert.equal(answer.status, status)
    await allUp(heddle)
    const [box, ...others] = (await boxesOf(heddle)).filter(({ at }) => !diedBefore.has(at))
    assert.deepEqual(others, [], 'one lane died, once')
    assert.equal(box!.reason, reason)
    assert.match(box!.message, message)
    assert.equal(box!.guilty?.plugin, 'harm.DoHarm')
    assert.ok(box!.guilty!.line?.startsWith(await lineOf(code)), `${box!.guilty!.line} is not the line of ${code}`)
    assert.equal(box!.guilty!.evidence, 'stack')
    const [work] = box!.in_flight
    assert.deepEqual([work!.kind, work!.name, work!.plugin, work!.id], ['request', 'GET /harm/:way', 'harm.DoHarm', id])
    assert.ok(work!.for_ms > 0)
    assert.ok(box!.lived_ms > 0)
    if (reason === 'stalled') {
      assert.ok(box!.stood_still_ms >= STALL_MS, `it stood still for ${box!.stood_still_ms} ms`)
      // One that waits uses none; on a machine with ten processes a loop gets a tenth.
      assert.ok(box!.cpu_ms_while_still! > STALL_MS / 20, `it used ${box!.cpu_ms_while_still} ms of the processor`)
    }
    const step = box!.steps.findLast(({ kind }) => kind === 'request')!
    assert.deepEqual([step.name, step.id, step.duration_ms], ['GET /harm/:way', id, null])
    assert.ok(box!.steps.some(({ kind, name }) => kind === 'call' && name === 'logger.info'))

    const [log, ...more] = deathsIn(heddle).slice(loggedBefore)
    assert.deepEqual(more, [])
    assert.ok(log!.msg.includes(box!.guilty!.line!), 'the log line names the line')
    const isTold = ({ msg, box: told }: LogLine) =>
      msg === 'told of a death' && (told as BlackBox).in_flight[0]?.id === id
    const told = await until(() => heddle.logs.find(isTold), 'the event')
    assert.equal((told.box as BlackBox).guilty!.line, box!.guilty!.line)
    const traces = (await heddle.json('/system/traces/flat')).body as { event: string }[]
    assert.equal(traces.filter(({ event }) => event === 'runtime.lane.died').length, diedBefore.size + 1)

    assert.equal((await heddle.json('/peace')).status, 200)
    assert.equal((await heddle.json('/system/health/ready')).status, 200)
  })
}

describe('in a process that does not wait long for a lane', () => {
  const heddleOf = shareDeadly({ env: { LANE_STALL_MS: String(STALL_MS) } })
  for (const way of AT_ONCE) testWay(heddleOf, way)
})

describe('in a process that waits long for a lane', () => {
  const heddleOf = shareDeadly({ env: { LANE_MEMORY_MB: String(LANE_MEMORY_MB), LANE_STALL_MS: '30000' } })

  test('a lane that stood still and goes on is named in the log, with the line', { timeout: 60_000 }, async () => {
    const heddle = heddleOf()
    // On a busy machine it may be over before it is looked at.
    const warning = await until(
      async () => {
        assert.equal((await heddle.json('/pause?ms=800')).status, 200)
        return heddle.logs.find(({ msg }) => /stood still for \d+ ms/.test(msg))
      },
      'the warning',
      30_000,
    )
    assert.ok(warning.msg.includes(await lineOf('while (Date.now() < endMs);')), warning.msg)
    assert.equal(deathsIn(heddle).length, 0)
  })

  for (const way of BY_MEMORY) testWay(heddleOf, way)
})

test('what does not end a lane costs one answer', { timeout: 60_000 }, async (t) => {
  const heddle = await startDeadly(t, { lanes: 1, env: { HTTP_HANDLER_TIMEOUT_MS: '300' } })
  assert.equal((await heddle.json('/harm/never')).status, 504, 'a promise that never settles')
  assert.equal((await heddle.json('/big')).status, 500, 'a result that is no JSON')
  assert.equal((await heddle.json('/circle')).status, 500, 'a result that has no end')
  assert.equal((await heddle.json('/harm/kill')).status, 500, 'a signal to its own process')
  assert.ok(heddle.logs.some(({ msg }) => /cannot signal the process/.test(msg)))
  assert.equal(deathsIn(heddle).length, 0)
  assert.equal(await heddle.stop(), 0)
})

test('an event that blocks its lane is named with its subscriber', { timeout: 60_000 }, async (t) => {
  const heddle = await startDeadly(t, { lanes: 1, env: { LANE_STALL_MS: String(STALL_MS) } })
  const id = await publish(heddle, 'harm.asked', { way: 'spin' })
  await until(() => deathsIn(heddle).length > 0, 'the death', 20_000)
  const [box] = await boxesOf(heddle)
  assert.deepEqual(
    box!.in_flight.map(({ kind, name, id }) => [kind, name, id]),
    [['event', 'harm.asked', id]],
  )
  assert.deepEqual([box!.guilty?.plugin, box!.guilty?.handler], ['harm.DoHarm', 'harm.asked'])
  assert.ok(box!.guilty!.line?.startsWith(await lineOf('for (;;) leak.kept.length = 0')))
  assert.ok(box!.steps.some((step) => step.kind === 'event' && step.name === 'harm.DoHarm.onAsked' && step.id === id))
})
