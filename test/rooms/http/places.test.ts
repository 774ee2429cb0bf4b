// Every kind of place that a client can hold, from the table of them: one client or one route that holds all it may keeps nobody else out.
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { BOUNDS, PLACES, type PlaceKind } from '../../../src/primary/http/places.ts'
import { fewDescriptors, noFewDescriptors } from '../../support/few-descriptors.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { ask, jsonOf, requestText } from '../../support/raw-client.ts'
import { shareService } from '../../support/shared-service.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { HANDSHAKE } from '../../support/web-socket.ts'

const HELD = fileURLToPath(new URL('../../fixtures/places', import.meta.url))
/** Bounds of the service: for one address, for one route, for the process. */
const PER_ADDRESS = 4
const PER_ROUTE = 2 * PER_ADDRESS
const MAX = 3 * PER_ADDRESS
/** Of a process that is short of them: some 100 connections. */
const DESCRIPTORS = 250
const DRIP_BYTES = 20_000
const DRIP_MS = 300

type Side = 'a' | 'b'
type Headers = Record<string, string>

interface Way {
  readonly what: string
  /** What takes one place. */
  readonly request: (prefix: string, side: Side, headers: Headers) => Buffer
  /** Sent every now and then: a body that is too slow is given up. */
  readonly drip?: Buffer
  /** The client leaves as soon as the handler runs. */
  readonly leaves?: true
}

const get =
  (path: string, own: Headers = {}) =>
  (prefix: string, side: Side, headers: Headers) =>
    requestText('GET', `${prefix}/${path}/${side}`, { ...headers, ...own })
const post =
  (path: string, own: Headers, begin = '') =>
  (prefix: string, side: Side, headers: Headers) =>
    Buffer.concat([requestText('POST', `${prefix}/${path}/${side}`, { ...headers, ...own }), Buffer.from(begin)])

const SIZED = { 'content-length': '500000000', 'content-type': 'application/octet-stream' }
const CHUNKED = { 'transfer-encoding': 'chunked', 'content-type': 'application/octet-stream' }
const FORM = { 'content-length': '500000000', 'content-type': 'multipart/form-data; boundary=xx' }
const BYTES = Buffer.alloc(DRIP_BYTES, 'x')
const CHUNK = Buffer.concat([Buffer.from(`${DRIP_BYTES.toString(16)}\r\n`), BYTES, Buffer.from('\r\n')])

/** How a client takes each kind of place. A kind without a way does not compile. */
const WAYS: Readonly<Record<Exclude<PlaceKind, 'connection'>, readonly Way[]>> = {
  request: [
    { what: 'a handler that waits', request: get('hang') },
    { what: 'a handler that waits, after a body', request: post('waiting', { 'content-length': '2' }, '{}') },
  ],
  'abandoned handler': [{ what: 'a handler that goes on', request: get('deaf'), leaves: true }],
  handshake: [{ what: 'a guard that waits', request: get('guarded', HANDSHAKE) }],
  upload: [
    { what: 'a sized body to a mount, of which nothing comes', request: post('mount', SIZED) },
    { what: 'a sized body to a mount', request: post('mount', SIZED), drip: BYTES },
    { what: 'a chunked body to a mount', request: post('mount', CHUNKED), drip: CHUNK },
    { what: 'a sized body that is streamed', request: post('pieces', SIZED), drip: BYTES },
    { what: 'a chunked body that is streamed', request: post('pieces', CHUNKED), drip: CHUNK },
    { what: 'parts of a form', request: post('form', FORM, '--xx\r\n'), drip: BYTES },
  ],
  'slow body': [
    { what: 'a sized body', request: post('body', SIZED), drip: BYTES },
    {
      what: 'a sized body that is short',
      request: post('mount', { ...SIZED, 'content-length': '60000' }),
      drip: Buffer.from('x'),
    },
    { what: 'a chunked body', request: post('body', CHUNKED), drip: CHUNK },
    { what: 'a body of which nothing comes', request: post('body', SIZED) },
  ],
  'event stream': [{ what: 'events that nobody reads', request: get('events') }],
  'long answer': [{ what: 'a stream of bytes', request: get('endless') }],
  socket: [{ what: 'a WebSocket', request: get('socket', HANDSHAKE) }],
}

/** One client that tries to hold a place. */
class Holder {
  readonly socket: Socket
  status = 0
  #timer: NodeJS.Timeout | undefined

  constructor(port: number, { request, drip }: Way, prefix: string, side: Side, from: string) {
    this.socket = connect(port, '127.0.0.1')
    this.socket.on('error', () => {})
    this.socket.on('data', (bytes: Buffer) => {
      this.status ||= Number(/^HTTP\/1\.1 (\d{3})/.exec(bytes.toString('latin1'))?.[1])
    })
    this.socket.on('close', () => clearInterval(this.#timer))
    this.socket.write(request(prefix, side, { 'x-forwarded-for': from }))
    if (drip !== undefined) this.#timer = setInterval(() => this.socket.write(drip), DRIP_MS)
  }

  get isRefused(): boolean {
    return this.status === 503
  }

  leave(): void {
    this.socket.destroy()
  }
}

const ENV = {
  LANE_MAX_INFLIGHT: String(MAX),
  HTTP_BODY_LIMIT: '1000000000',
  HTTP_TRUSTED_PROXIES: '127.0.0.1',
  HTTP_ALLOWED_HOSTS: '*',
  ...Object.fromEntries(
    (['REQUESTS', 'UPLOADS', 'STREAMS'] as const).flatMap((what) => [
      ...(what === 'REQUESTS' ? [] : [[`HTTP_MAX_${what}`, String(MAX)]]),
      [`HTTP_MAX_${what}_PER_ROUTE`, String(PER_ROUTE)],
      [`HTTP_MAX_${what}_PER_ADDRESS`, String(PER_ADDRESS)],
    ]),
  ),
}

/** Where the handlers run. The primary has a process bound of its own, which takes thousands of connections to reach. */
const THREADS = { lane: '', primary: '/primary' } as const

const start = shareService((owner) => startHeddle(owner, { domains: [HELD, SHIPPED], lanes: 1, env: ENV }))

const statusOf = async ({ port }: Heddle, from: string, path: string) =>
  (await ask(port, 'GET', path, { 'x-forwarded-for': from })).status

/** Places that are held in all, as the metrics say; the request for them has one. */
async function heldIn(heddle: Heddle): Promise<number> {
  const text = await (await heddle.fetch('/system/metrics/prometheus')).text()
  const figures = [...text.matchAll(/^heddle_http_places_held\{kind="\w+"\} (\d+)$/gm)].map(([, value]) =>
    Number(value),
  )
  assert.equal(figures.length, 3)
  return figures.reduce((sum, value) => sum + value)
}

for (const [kind, ways] of Object.entries(WAYS) as [Exclude<PlaceKind, 'connection'>, readonly Way[]][]) {
  const { bounds, from, until: end } = PLACES[kind]
  const { address, route, process } = BOUNDS[bounds]
  const holdsRequests = bounds === 'requests'

  describe(`${kind}: held from ${from}, until ${end}`, () => {
    for (const way of ways)
      for (const [thread, prefix] of Object.entries(THREADS)) {
        it(`${way.what}, in a ${thread}: ${address}, ${route} and ${process} bound it, and others are served`, async () => {
          const heddle = start()
          const isProcessFull = !way.leaves && !(holdsRequests && prefix !== '')
          const statusIn = (sender: string, path = '/other') => statusOf(heddle, sender, `${prefix}${path}`)
          const before = await heldIn(heddle)
          const holders: Holder[] = []
          const take = async (side: Side, sender: string): Promise<Holder> => {
            const holder = new Holder(heddle.port, way, prefix, side, sender)
            holders.push(holder)
            // Two turns of the service: its answer would be here.
            for (let turns = 0; turns < 2; turns++) await ask(heddle.port, 'GET', '/system/health/live')
            return holder
          }
          const begun = async () =>
            jsonOf(await ask(heddle.port, 'GET', `${prefix}/begun`, { 'x-forwarded-for': '192.0.2.9' })).begun
          const hold = async (side: Side, sender: string, places: number) => {
            for (let n = 0; n < places; n++) {
              const begunBefore = way.leaves ? await begun() : 0
              const holder = await take(side, sender)
              assert.equal(holder.isRefused, false, `${sender} has its place ${n + 1}`)
              if (!way.leaves) continue
              await until(async () => (await begun()) > begunBefore, 'the handler runs')
              holder.leave()
            }
          }
          const findNone = async (side: Side, sender: string, bound: string) => {
            const holder = await take(side, sender)
            await until(() => holder.isRefused, `503 for one more than ${bound}`)
            holder.leave()
          }

          await hold('a', '192.0.2.1', PER_ADDRESS)
          await findNone('a', '192.0.2.1', address)
          await findNone('b', '192.0.2.1', address)
          assert.equal(await statusIn('192.0.2.1'), holdsRequests ? 503 : 200, 'another route, the same client')
          assert.equal(await statusIn('192.0.2.9'), 200, 'another client')

          await hold('a', '192.0.2.2', PER_ROUTE - PER_ADDRESS)
          await findNone('a', '192.0.2.3', route)
          assert.equal(await statusIn('192.0.2.9'), 200, 'another route')
          // The last place lets the handlers go.
          await hold('b', '192.0.2.4', way.leaves ? MAX - PER_ROUTE - 1 : MAX - PER_ROUTE)
          if (isProcessFull) {
            await findNone('b', '192.0.2.5', process)
            assert.equal(await statusIn('192.0.2.9'), holdsRequests ? 503 : 200, 'whoever else asks')
            if (bounds === 'requests') {
              const readiness = jsonOf(await ask(heddle.port, 'GET', '/system/health/ready'))
              assert.ok(
                readiness.reasons.some((reason: string) => reason.includes(process)),
                JSON.stringify(readiness),
              )
            }
          } else if (way.leaves) assert.equal(await statusIn('192.0.2.9', '/release'), 200)

          for (const holder of holders) holder.leave()
          // All of them come back: as many can be held again.
          for (const [side, sender] of [
            ['a', '192.0.2.1'],
            ['b', '192.0.2.4'],
          ] as const) {
            await until(async () => (await statusIn(sender)) === 200, `${sender} is served again`)
            const again: Holder[] = []
            await until(async () => {
              const holder = await take(side, sender)
              if (holder.isRefused) return false
              again.push(holder)
              return again.length === PER_ADDRESS
            }, `the places of ${sender} are free again`)
            for (const holder of again) holder.leave()
          }
          await until(async () => {
            // A request that has waited may have begun since.
            if (way.leaves) await statusIn('192.0.2.9', '/release')
            return (await heldIn(heddle)) === before
          }, 'all places have come back')
        })
      }
  })
}

describe(`connection: held from ${PLACES.connection.from}, until ${PLACES.connection.until}`, {
  skip: noFewDescriptors,
}, () => {
  const limited = shareService((owner) =>
    startHeddle(owner, { domains: [HELD, SHIPPED], lanes: 1, env: fewDescriptors(DESCRIPTORS) }),
  )

  it(`${BOUNDS.connections.address} bound it, and others are served`, async () => {
    const heddle = limited()
    const from = (localAddress: string) => connect({ port: heddle.port, host: '127.0.0.1', localAddress })
    const crowd = Array.from({ length: DESCRIPTORS }, () => from('127.0.0.2').on('error', () => {}))
    let closed = 0
    for (const socket of crowd) socket.resume().on('close', () => void closed++)
    await until(() => closed > 0 && crowd.every(({ connecting }) => !connecting), 'those beyond the half are closed')
    for (let n = 0; n < 10; n++) assert.equal((await ask(heddle.port, 'GET', '/other')).status, 200)
    assert.equal((await ask(heddle.port, 'GET', '/system/health/ready')).status, 200)
    for (const socket of crowd) socket.destroy()
    await until(async () => {
      const socket = from('127.0.0.2').on('error', () => {})
      socket.write(requestText('GET', '/other'))
      const answered = await new Promise((resolve) =>
        socket.on('data', () => resolve(true)).on('close', () => resolve(false)),
      )
      socket.destroy()
      return answered
    }, 'the client is taken again')
  })
})
