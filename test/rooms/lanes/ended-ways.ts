import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { BlackBox } from '../../../src/contracts/registry.ts'
import type { Heddle, LogLine } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { allUp, boxesOf, deathsIn } from './deadly.ts'

const HARM = 'test/fixtures/deadly/harm/plugins/do-harm.ts'

/** `file:line` of the first line of the fixture that has this text. */
export async function lineOf(text: string): Promise<string> {
  const path = fileURLToPath(new URL('../../fixtures/deadly/harm/plugins/do-harm.ts', import.meta.url))
  const lines = (await readFile(path, 'utf8')).split('\n')
  return `${HARM}:${lines.findIndex((line) => line.includes(text)) + 1}:`
}

/** Longer than a busy machine holds a lane up, and long enough for one that loops to use some of the processor there. */
export const STALL_MS = 1500
export const MEMORY_ENV = { LANE_MEMORY_MB: '64', LANE_STALL_MS: '30000' }
export const GREW = /grew by more than 128 MiB while it stood still/

export type Way = readonly [way: string, reason: string, status: number, message: RegExp, guiltyCode: string]
export function testWay(heddleOf: () => Heddle, [way, reason, status, message, code]: Way): void {
  test(`a handler that ends its lane (${way}) costs its own request, and the report names its line`, async () => {
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
    assert.ok(box!.lived_ms! > 0)
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
