import assert from 'node:assert/strict'
import { type BenchCase, ratioTo, type Target } from '../bench-case.ts'
import { compare, compared, cpuUs, type Load, type Measure, perSec } from '../comparison.ts'
import { getRequest } from '../load/client.ts'
import { type BenchServer, heddleSide, serverSide } from '../server.ts'

const NAMES = ['ada', 'grace', 'edsger', 'barbara', 'donald', 'tony', 'frances', 'ken']

export const HELLO_LOAD: Load = { requests: NAMES.map((name) => getRequest(`/hello/${name}`)), connections: 64 }

/** The listener's library alone: what the runtime adds to it is the rest. */
const BARE = {
  uws: { script: 'bench/baselines/hello-uws.ts', title: 'bare uWebSockets.js' },
  node: { script: 'bench/baselines/hello-node.ts', title: 'bare node:http' },
}

export const hello: BenchCase = {
  name: 'hello',
  title: 'GET /hello/:name through one lane, 64 connections, seven browser-like headers',
  async run(context) {
    const bareSide = context.listener === 'node' ? 'node' : 'uws'
    const rounds = await compare(context, {
      sides: {
        ...heddleSide(context, 'heddle', 1),
        ...serverSide(context, 'fastify', 'bench/baselines/hello-fastify.ts'),
        ...serverSide(context, bareSide, BARE[bareSide].script),
      },
      load: HELLO_LOAD,
      before: verifyHello,
    })
    // The targets are those of uWebSockets.js: what a platform without it gets is told.
    const target = (sense: Target['sense'], value: number): Target | null =>
      bareSide === 'node' ? null : ratioTo(sense, value)
    const beside = (measure: Measure, side: string, title: string) => compared(rounds, measure, 'heddle', side, title)
    const cpu = { label: 'hello: CPU per request, whole process', unit: 'µs CPU/request' }
    return {
      rows: [
        { ...cpu, ...beside(cpuUs, 'fastify', 'Fastify'), target: target('at most', 0.6) },
        {
          label: 'hello: requests per second',
          unit: 'requests/s',
          ...beside(perSec, 'fastify', 'Fastify'),
          target: target('at least', 1.8),
        },
        { ...cpu, ...beside(cpuUs, bareSide, BARE[bareSide].title), target: target('at most', 1.45) },
      ],
      details: { rounds },
    }
  },
}

/** Checks that all sides send the same answer; otherwise they cannot be compared. */
export async function verifyHello(server: BenchServer): Promise<void> {
  const response = await fetch(`http://${server.host}:${server.port}/hello/ada`, {
    headers: { 'x-request-id': 'bench-1' },
  })
  assert.equal(response.status, 200, server.name)
  assert.equal(await response.text(), '{"success":true,"data":{"hello":"ada"}}', server.name)
  assert.equal(response.headers.get('x-request-id'), 'bench-1', server.name)
  assert.equal(response.headers.get('x-content-type-options'), 'nosniff', server.name)
  assert.match(response.headers.get('content-type') ?? '', /^application\/json/, server.name)
}
