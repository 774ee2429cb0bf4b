// Steps of a request that run in one thread, each beside what does the least for it: the copy to another thread, the route, the JSON of the answer.
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads'
import FindMyWay from 'find-my-way'
import { type RouteEntry, RouteTable } from '../../src/primary/http/routes.ts'
import { jsonAnswer } from '../../src/runtime/endpoint/json-answer.ts'
import { KIND } from '../../src/transport/frames/frames.ts'
import { RequestFrame, readRequest, requestMaxBytes, writeRequest } from '../../src/transport/frames/request-frame.ts'
import { createRing, RingConsumer, RingProducer } from '../../src/transport/memory/spsc-ring.ts'
import type { WindowPlan } from '../windows.ts'
import { nanosecondsOf, repeated } from './tasks.ts'

const PATH = '/orders/4711/items'
const TEMPLATES = ['/orders', '/orders/:id', '/orders/:id/items', '/users/:id', '/hello/:name', '/files/*']
const IDS = 'req_0123456789abcdef'
const ADDRESS = '203.0.113.7'
const HEADERS = 'content-type\rapplication/json\raccept\r*/*\ruser-agent\rbench\r'
const BODY = Buffer.from(JSON.stringify({ sku: 'a-1', count: 2, note: 'a note of usual length' }))
const ANSWER = { success: true, data: { id: 4711, items: [{ sku: 'a-1', count: 2 }], total: 1250, note: 'paid' } }
const SOURCE = { plugin: 'BenchPlugin', method: 'GET', route: PATH }
const RING_BYTES = 1 << 16

/** Measures the processor time of each step and of its baseline, nanoseconds. */
export default async function measureSteps(plan: WindowPlan) {
  /** Sent together with the figures, so that V8 cannot remove the calls. */
  let sum = 0
  const memory = createRing(RING_BYTES)
  const producer = new RingProducer(memory)
  const consumer = new RingConsumer(memory)
  const text = IDS + ADDRESS + PATH + HEADERS
  const frame = new RequestFrame(1, 1, IDS.length, ADDRESS.length, PATH.length, 0, 0, text, BODY)
  const { port1, port2 } = new MessageChannel()
  const message = { id: IDS, ip: ADDRESS, method: 'POST', path: PATH, headers: HEADERS, body: BODY }

  const table = new RouteTable()
  const router = FindMyWay()
  for (const [number, path] of TEMPLATES.entries()) {
    table.add({
      number,
      plugin: 'BenchPlugin',
      method: 'GET',
      path,
      zone: 'application',
      kind: 'endpoint',
    } as RouteEntry)
    router.on('GET', path, () => {})
  }

  const tasks = {
    ring: repeated(() => {
      const at = producer.reserve(requestMaxBytes(frame))
      producer.commit(writeRequest(producer, at, frame), KIND.REQUEST, 1)
      consumer.drain((_kind, _id, offset) => {
        sum += readRequest(consumer, offset).path.length
      }, 1)
    }),
    clone: repeated(() => {
      port1.postMessage(message)
      sum += (receiveMessageOnPort(port2)!.message as typeof message).path.length
    }),
    table: repeated(() => {
      sum += table.find('GET', PATH)!.number
    }),
    router: repeated(() => {
      sum += router.find('GET', PATH)!.params.id!.length
    }),
    answer: repeated(() => {
      sum += jsonAnswer(ANSWER, SOURCE).length
    }),
    stringify: repeated(() => {
      sum += JSON.stringify(ANSWER).length
    }),
  }
  const ns = await nanosecondsOf(tasks, plan)
  port1.close()
  return {
    copy: { heddleNs: ns.ring, baselineNs: ns.clone },
    route: { heddleNs: ns.table, baselineNs: ns.router },
    json: { heddleNs: ns.answer, baselineNs: ns.stringify },
    sum,
  }
}
