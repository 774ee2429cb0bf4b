import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { until } from '../support/until.ts'
import { allUp, boxesOf, deathsIn, publish, startDeadly } from './deadly.ts'

const HARM = 'test/fixtures/deadly/harm/plugins/do-harm.ts'

/** `file:line` of the first line of the fixture that has this text. */
async function lineOf(text: string): Promise<string> {
  const path = fileURLToPath(new URL('../fixtures/deadly/harm/plugins/do-harm.ts', import.meta.url))
  const lines = (await readFile(path, 'utf8')).split('\n')
  return `${HARM}:${lines.findIndex((line) => line.includes(text)) + 1}:`
}

const GREW = /grew by more than 512 MiB while it stood still/
const WAYS = [
  // way, reason, status, message, code of the guilty line
  ['spin', 'stalled', 504, /stood still for \d+ ms/, 'for (;;) leak.kept.length = 0'],
  ['regex', 'stalled', 504, /stood still/, '/^(a+)+$/'],
  ['heap', 'memory', 500, GREW, 'leak.kept.push({ n: leak.kept.length'],
  ['strings', 'memory', 500, GREW, 'Array.from({ length: 1000 }'],
  ['map', 'memory', 500, GREW, 'map.set(n'],
  ['copies', 'memory', 500, GREW, 'leak.kept.push(list.concat(list))'],
  ['buffers', 'memory', 500, GREW, 'Buffer.alloc(1 << 20, 1)'],
  ['throw', 'crashed', 500, /^thrown by a timer$/, "throw new TypeError('thrown by a timer')"],
  ['reject', 'crashed', 500, /^rejected by nobody$/, "Promise.reject(new Error('rejected by nobody'))"],
  ['exit', 'exited', 500, /process\.exit\(3\) was called/, 'return process.exit(3)'],
] as const

for (const [way, reason, status, message, code] of WAYS) {
  test(`a handler that ends its lane (${way}) costs its own request, and the report names its line`, {
    timeout: 120_000,
  }, async (t) => {
    const heddle = await startDeadly(t, {
      env: { LANE_MEMORY_MB: '256', LANE_STALL_MS: reason === 'memory' ? '30000' : '1000' },
    })
    const answer = await heddle.json(`/harm/${way}`, { headers: { 'x-request-id': `the-${way}` } })
    assert.equal(answer.status, status)
    await allUp(heddle)
    const [box, ...others] = await boxesOf(heddle)
    assert.deepEqual(others, [], 'one lane died, once')
    assert.equal(box!.reason, reason)
    assert.match(box!.message, message)
    assert.equal(box!.guilty?.plugin, 'harm.DoHarm')
    assert.ok(box!.guilty!.line?.startsWith(await lineOf(code)), `${box!.guilty!.line} is not the line of ${code}`)
    assert.equal(box!.guilty!.evidence, 'stack')
    const [work] = box!.in_flight
    assert.deepEqual(
      [work!.kind, work!.name, work!.plugin, work!.id],
      ['request', 'GET /harm/:way', 'harm.DoHarm', `the-${way}`],
    )
    assert.ok(work!.for_ms > 0)
    assert.ok(box!.lived_ms > 0)
    if (reason === 'stalled') assert.ok(box!.stood_still_ms >= 1000 && box!.cpu_ms_while_still! > 100)
    const step = box!.steps.findLast(({ kind }) => kind === 'request')!
    assert.deepEqual([step.name, step.id, step.duration_ms], ['GET /harm/:way', `the-${way}`, null])
    assert.ok(box!.steps.some(({ kind, name }) => kind === 'call' && name === 'logger.info'))

    const log = deathsIn(heddle)
    assert.equal(log.length, 1)
    assert.ok(log[0]!.msg.includes(box!.guilty!.line!), 'the log line names the line')
    const told = await until(() => heddle.logs.find(({ msg }) => msg === 'told of a death'), 'the event')
    assert.equal((told.box as { guilty: { line: string } }).guilty.line, box!.guilty!.line)
    const traces = (await heddle.json('/system/traces/flat')).body
    assert.ok(traces.some(({ event }: { event: string }) => event === 'runtime.lane.died'))

    assert.equal((await heddle.json('/peace')).status, 200)
    assert.equal((await heddle.json('/system/health/ready')).status, 200)
    assert.equal(await heddle.stop(), 0)
  })
}

test('what does not end a lane costs one answer', { timeout: 60_000 }, async (t) => {
  const heddle = await startDeadly(t, { env: { HTTP_HANDLER_TIMEOUT_MS: '300' } })
  assert.equal((await heddle.json('/harm/never')).status, 504, 'a promise that never settles')
  assert.equal((await heddle.json('/big')).status, 500, 'a result that is no JSON')
  assert.equal((await heddle.json('/circle')).status, 500, 'a result that has no end')
  assert.equal((await heddle.json('/harm/kill')).status, 500, 'a signal to its own process')
  assert.ok(heddle.logs.some(({ msg }) => /cannot signal the process/.test(msg)))
  assert.equal(deathsIn(heddle).length, 0)
  assert.equal(await heddle.stop(), 0)
})

test('an event that blocks its lane is named with its subscriber', { timeout: 60_000 }, async (t) => {
  const heddle = await startDeadly(t)
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

test('a lane that stood still and goes on is named in the log, with the line', { timeout: 60_000 }, async (t) => {
  const heddle = await startDeadly(t, { env: { LANE_STALL_MS: '20000' } })
  assert.equal((await heddle.json('/pause?ms=1500')).status, 200)
  const warning = await until(() => heddle.logs.find(({ msg }) => /stood still for \d+ ms/.test(msg)), 'the warning')
  assert.ok(warning.msg.includes(await lineOf('while (Date.now() < endMs);')), warning.msg)
  assert.equal(deathsIn(heddle).length, 0)
  assert.equal(await heddle.stop(), 0)
})
