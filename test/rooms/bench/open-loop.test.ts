import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { getRequest } from '../../../bench/load/client.ts'
import { LoadGenerator } from '../../../bench/load/generator.ts'
import { Arrivals } from '../../../bench/load/loops.ts'
import type { RatePlan, StreamResult } from '../../../bench/load/plan.ts'
import { runRates } from '../../../bench/load/runs.ts'
import { LatencyHistogram } from '../../../bench/load/tally.ts'
import { serve } from './serve.ts'

const BODY = '{"success":true}'

function answer(response: ServerResponse, status = 200, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-length': BODY.length, ...headers })
  response.end(BODY)
}

function stream(perSec: number, connections: number, path = '/') {
  return { name: path, requests: [getRequest(path)], perSec, connections }
}

function plan(target: { host: string; port: number }, changes: Partial<RatePlan>): RatePlan {
  return { ...target, streams: [], warmupMs: 0, measureMs: 200, drainMs: 3000, ...changes }
}

function sumOf({ ok, statuses, lost, unanswered, unsent }: StreamResult): number {
  return ok + Object.values(statuses).reduce((sum, count) => sum + count, 0) + lost + unanswered + unsent
}

test('requests are due at even intervals from the start to before the end', () => {
  const arrivals = new Arrivals(250, 1000, 1012)
  assert.deepEqual([arrivals.take(), arrivals.take(), arrivals.nextMs, arrivals.take()], [1000, 1004, 1008, 1008])
  assert.equal(arrivals.nextMs, Number.POSITIVE_INFINITY)
})

test('latencies of seconds are told apart, and none is lost', () => {
  const histogram = new LatencyHistogram()
  for (const ms of [0.004, 3, 1999.995, 25_000.2, 1_000_000]) histogram.record(ms)
  const at = (share: number) => Number(histogram.percentileMs(share).toPrecision(3))
  assert.deepEqual([at(0.2), at(0.4), at(0.6), at(0.8), at(1)], [0, 3, 2000, 25_000, 1_000_000])
  const { count, p50, p999, max } = histogram.summary()
  assert.deepEqual([count, p50, p999, max], [5, histogram.percentileMs(0.5), max, histogram.maxMs])
})

test('each stream offers its rate, whatever the other does', async (t) => {
  const target = await serve(t, (_request, response) => answer(response))
  const { streams } = await runRates(plan(target, { streams: [stream(500, 8, '/a'), stream(50, 2, '/b')] }))
  // On a busy machine the last ones may not be sent in the window.
  assert.deepEqual(
    streams.map(({ name, offered, ok, unsent }) => [name, offered, ok + unsent]),
    [
      ['/a', 100, 100],
      ['/b', 10, 10],
    ],
  )
  assert.ok(streams.every(({ ok }) => ok > 0))
})

test('a request that is due while all connections wait has waited, too', async (t) => {
  let isFirst = true
  const target = await serve(t, (_request, response) => {
    if (isFirst) setTimeout(() => answer(response), 300)
    else answer(response)
    isFirst = false
  })
  const { streams } = await runRates(plan(target, { streams: [stream(100, 1)], measureMs: 400 }))
  const [{ ok, unsent, okMs, sendDelayMs }] = streams as [StreamResult]
  assert.ok(ok > 20 && ok + unsent === 40, `${ok} good, ${unsent} unsent`)
  // Thirty were due while the first waited, 10 ms apart.
  assert.ok(okMs.p50 > 90 && okMs.max > 290, JSON.stringify(okMs))
  assert.ok(sendDelayMs.p50 > 90 && sendDelayMs.max > 280, JSON.stringify(sendDelayMs))
})

test('every request ends in one count: good, another status, lost, unanswered, unsent', async (t) => {
  let turn = 0
  const target = await serve(t, (_request, response) => {
    switch (turn++ % 5) {
      case 0:
        return answer(response, 503, { 'retry-after': '1' })
      case 1:
        return answer(response, 503)
      case 2:
        return response.destroy()
      case 3:
        return turn > 15 ? undefined : answer(response, 504)
      default:
        return answer(response)
    }
  })
  const { streams } = await runRates(plan(target, { streams: [stream(100, 2)], measureMs: 1000, drainMs: 100 }))
  const [result] = streams as [StreamResult]
  assert.equal(result.offered, 100)
  assert.equal(sumOf(result), 100)
  assert.ok(result.ok > 0 && result.statuses[503]! > 1 && result.statuses[504]! > 0 && result.lost > 0)
  assert.equal(result.unanswered, 2)
  assert.ok(result.unsent > 0)
  assert.ok(result.withoutRetryAfter > 0 && result.withoutRetryAfter < result.statuses[503]!)
  assert.equal(result.refusedMs.count, result.statuses[503])
  assert.equal(result.allMs.count, 100)
  // Those that never got an answer have waited until the end of the drain.
  assert.ok(result.allMs.max > 90, JSON.stringify(result.allMs))
  assert.ok(result.slow.some(({ status, tookMs }) => status === 0 && tookMs > 90))
})

test('what is due before the window is sent and not counted', async (t) => {
  let seen = 0
  const target = await serve(t, (_request, response) => {
    seen++
    answer(response)
  })
  const { streams } = await runRates(plan(target, { streams: [stream(200, 4)], warmupMs: 200 }))
  assert.equal(streams[0]!.offered, 40)
  // What is still unsent when the window begins is dropped.
  assert.ok(seen > 40 && seen <= 80, `${seen} were sent`)
})

test('what could not be sent before the window is forgotten', async (t) => {
  const target = await serve(t, (_request, response) => setTimeout(() => answer(response), 50))
  const { streams } = await runRates(plan(target, { streams: [stream(200, 1)], warmupMs: 300, measureMs: 400 }))
  const [{ ok, unsent, offered, okMs }] = streams as [StreamResult]
  assert.equal(offered, 80)
  // With the 60 of the warm-up before it none of the window would have had its turn.
  assert.ok(ok >= 2 && unsent > 40 && ok + unsent === 80, `${ok} good, ${unsent} unsent`)
  assert.ok(okMs.max > 100, JSON.stringify(okMs))
})

test('callers call beside the streams, from the window on', async (t) => {
  const beganMs: number[] = []
  const startMs = performance.now()
  const target = await serve(t, (request, response) => {
    if (request.url === '/caller') beganMs.push(performance.now() - startMs)
    answer(response, request.url === '/caller' && beganMs.length % 2 === 0 ? 504 : 200)
  })
  const callers = { requests: [getRequest('/caller')], connections: 1 }
  const result = await runRates(plan(target, { streams: [stream(100, 2)], callers, warmupMs: 150 }))
  assert.ok(beganMs[0]! >= 149, `${beganMs[0]} ms`)
  assert.ok(result.callers.ok > 2 && Math.abs(result.callers.ok - result.callers.non2xx) <= 1)
  assert.equal(result.streams[0]!.ok, 20)
})

test('a process of its own offers the load and looks at the memory of the server', async (t) => {
  const target = await serve(t, (_request, response) => answer(response))
  const generator = new LoadGenerator()
  t.after(() => generator.stop())
  const ordered = plan(target, { streams: [stream(200, 4)], measureMs: 500, observedPid: process.pid })
  const { streams, residentBytes, loadCores } = await generator.offer(ordered)
  const [{ ok, unsent }] = streams as [StreamResult]
  assert.ok(ok > 0 && ok + unsent === 100, `${ok} good, ${unsent} unsent`)
  assert.ok(residentBytes.length >= 3 && residentBytes.every((bytes) => bytes > 1e7), String(residentBytes))
  assert.ok(loadCores > 0 && loadCores < 4, String(loadCores))
})
