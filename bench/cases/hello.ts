import assert from 'node:assert/strict'
import type { BenchCase } from '../bench-case.ts'
import { busyNote, compare, cpuUs, faultsOf, type Load, medianOf, medianRatio, perSec } from '../comparison.ts'
import { getRequest } from '../load/http-request.ts'
import { type BenchServer, heddleSide, serverSide } from '../server.ts'

const NAMES = ['ada', 'grace', 'edsger', 'barbara', 'donald', 'tony', 'frances', 'ken']

export const HELLO_LOAD: Load = { requests: NAMES.map((name) => getRequest(`/hello/${name}`)), connections: 64 }

export const hello: BenchCase = {
  name: 'hello',
  title: 'GET /hello/:name through one lane, 64 connections, seven browser-like headers',
  async run(context) {
    const rounds = await compare(context, {
      sides: {
        ...heddleSide(context, 'heddle', 1),
        ...serverSide(context, 'fastify', 'bench/baselines/hello-fastify.ts'),
        ...serverSide(context, 'uws', 'bench/baselines/hello-uws.ts'),
      },
      load: HELLO_LOAD,
      before: verifyHello,
    })
    const cpu = { unit: 'µs CPU/request', heddle: medianOf(rounds, 'heddle', cpuUs) }
    return {
      rows: [
        {
          ...cpu,
          label: 'hello: CPU per request, whole process',
          baseline: medianOf(rounds, 'fastify', cpuUs),
          baselineName: 'Fastify',
          ratio: medianRatio(rounds, 'heddle', 'fastify', cpuUs),
          target: { of: 'ratio', sense: 'at most', value: 0.8, unit: '×' },
          faults: faultsOf(rounds, 'heddle', 'fastify'),
          ...busyNote(rounds),
        },
        {
          label: 'hello: requests per second',
          unit: 'requests/s',
          heddle: medianOf(rounds, 'heddle', perSec),
          baseline: medianOf(rounds, 'fastify', perSec),
          baselineName: 'Fastify',
          ratio: medianRatio(rounds, 'heddle', 'fastify', perSec),
          target: { of: 'ratio', sense: 'at least', value: 1.35, unit: '×' },
          faults: faultsOf(rounds, 'heddle', 'fastify'),
          ...busyNote(rounds),
        },
        {
          ...cpu,
          label: 'hello: CPU per request, whole process',
          baseline: medianOf(rounds, 'uws', cpuUs),
          baselineName: 'bare uWebSockets.js',
          ratio: medianRatio(rounds, 'heddle', 'uws', cpuUs),
          target: { of: 'ratio', sense: 'at most', value: 1.75, unit: '×' },
          faults: faultsOf(rounds, 'heddle', 'uws'),
          ...busyNote(rounds),
        },
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
