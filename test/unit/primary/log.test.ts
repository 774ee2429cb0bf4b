import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ObservedRequest } from '../../../src/contracts/tracing.ts'
import { loadSettings } from '../../../src/core/config/load.ts'
import { exactMs } from '../../../src/core/schedule/clock.ts'
import { LogOutput, WHOLE_PIECE_BYTES } from '../../../src/primary/logging/log-output.ts'
import { createLog } from '../../../src/primary/logging/process-log.ts'
import { RequestLog } from '../../../src/primary/logging/request-log.ts'
import { Terminal } from '../../../src/primary/logging/terminal.ts'

/** A log for people, and what it has written. */
async function logOf(isTerminal: boolean, environment: Record<string, string> = {}, level = 'info') {
  let sent = ''
  const write = (text: string): void => {
    sent += text
  }
  const { settings } = loadSettings({ LOG_FORMAT: 'pretty', LOG_LEVEL: level })
  const log = createLog(settings, new Terminal(write, isTerminal, environment, () => 80))
  return { log, sent: () => sent }
}

const REQUEST = { method: 'GET', path: '/users/7', durationMs: 3.1234, plugin: 'users.ShowUser' }
const TIME = String.raw`\[\d\d:\d\d:\d\d\.\d{3}\]`

test('a request is one line: method, path, status, duration, plugin', async () => {
  const { log, sent } = await logOf(false)
  log.request({ ...REQUEST, status: 200 })
  log.request({ ...REQUEST, status: 0, durationMs: 1234.5 })
  log.request({ ...REQUEST, status: 404, plugin: '' })
  const lines = [
    `${TIME} GET     /users/7 200 3.1 ms  users.ShowUser`,
    `${TIME} GET     /users/7 gone 1235 ms  users.ShowUser`,
    `${TIME} GET     /users/7 404 3.1 ms`,
  ]
  assert.match(sent(), new RegExp(`^${lines.map((line) => `${line}\n`).join('')}$`))
})

test('its status is coloured by class, on a terminal', async () => {
  const colours = { 204: 32, 304: 36, 422: 33, 500: 31 }
  const coloured = await logOf(true)
  for (const [status, code] of Object.entries(colours)) {
    const { log, sent } = coloured
    log.request({ ...REQUEST, status: Number(status) })
    assert.ok(sent().includes(`\x1b[${code}m${status}\x1b[0m`), JSON.stringify(sent()))
  }
  const { log, sent } = await logOf(true, { NO_COLOR: '1' })
  log.request({ ...REQUEST, status: 200 })
  log.write({ level: 'ERROR', message: 'Something', timestampMs: Date.now(), identity: 'main' })
  assert.ok(!sent().includes('\x1b'), JSON.stringify(sent()))
})

test('the line of a request leads to its page, and that of one that failed shows its address', async () => {
  const page = 'http://127.0.0.1:8000/system/dashboard/requests/req_1'
  const { log, sent } = await logOf(true)
  log.request({ ...REQUEST, status: 200, page })
  assert.ok(sent().includes(`\x1b]8;;${page}\x1b\\\x1b[32m200\x1b[0m\x1b]8;;\x1b\\`), JSON.stringify(sent()))
  const plain = await logOf(false)
  plain.log.request({ ...REQUEST, status: 200, page })
  plain.log.request({ ...REQUEST, status: 503, page })
  const line = (status: number): string => `${TIME} GET     /users/7 ${status} 3.1 ms  users.ShowUser\n`
  assert.match(plain.sent(), new RegExp(`^${line(200)}${line(503)}  ${page}\n$`))
})

test('requests are told at the level INFO', async () => {
  const { log, sent } = await logOf(true, {}, 'warning')
  log.request({ ...REQUEST, status: 200 })
  assert.equal(sent(), '')
})

test('what every lane says of the code is told once, until the code is another', async () => {
  const { log, sent } = await logOf(false)
  const say = () =>
    log.write({
      level: 'ERROR',
      message: 'Plugin a.B failed in boot: no\n  a/b.ts:1:2',
      timestampMs: Date.now(),
      identity: 'kernel',
      fields: { plugin: 'a.B', stage: 'boot' },
    })
  say()
  say()
  assert.equal(sent().match(/failed in boot/g)?.length, 1)
  assert.match(sent(), /failed in boot: no {2}plugin=a\.B {2}stage=boot\n {2}a\/b\.ts:1:2\n/)
  log.forgetFaults()
  say()
  assert.equal(sent().match(/failed in boot/g)?.length, 2)
})

test('steps of something are one line on a terminal, and lines elsewhere', async () => {
  const steps = async (isTerminal: boolean): Promise<string> => {
    const { log, sent } = await logOf(isTerminal)
    const told = { timestampMs: Date.now(), identity: 'db' }
    for (let n = 0; n < 2; n++) {
      log.write({ ...told, level: 'DEBUG', message: `Applying migration shop/00${n}`, fields: { done: n, of: 2 } })
      const fields = { done: n + 1, of: 2, duration_ms: 4 }
      log.write({ ...told, level: 'INFO', message: `Applied migration shop/00${n}`, fields })
    }
    return sent()
  }
  const line = (text: string) => `\r\x1b[K${text}`
  assert.equal(
    await steps(true),
    [
      'db  0 of 2  Applying migration shop/000',
      line('db  1 of 2  Applied migration shop/000  4 ms'),
      line('db  1 of 2  Applying migration shop/001'),
      line('db  2 of 2  Applied migration shop/001  4 ms\n'),
    ].join(''),
  )
  const plain = await steps(false)
  assert.match(
    plain,
    /^\[.*\] INFO: db {2}Applied migration shop\/000 {2}done=1 {2}of=2 {2}duration_ms=4\n\[.*of=2.*\n$/,
  )
})

/** A request as the listener has it. */
const observed = (requestId: string, path: string, plugin = ''): ObservedRequest => ({
  ...{ requestId, key: requestId, method: 'POST', path, startMs: exactMs(), servedBy: -1, isTold: false },
  route: { number: 0, method: 'POST', path, plugin, kind: 'endpoint', zone: 'application' },
})

test('a request is told without its query, with nothing that a terminal would obey, and not of pages that poll', () => {
  const told: string[] = []
  const requests = new RequestLog(({ path, status }) => void told.push(`${path} ${status}`))
  const request = (path: string, status: number): void => requests.ended(observed('r', path), status, exactMs())
  request('/a\x1b[31m\u009b1mb', 200)
  request('/system/status', 200)
  request('/system/status', 503)
  request('/system/traces/stream', 0)
  request(`/${'x'.repeat(500)}`, 404)
  assert.deepEqual(told, ['/a\\u001b[31m\\u009b1mb 200', '/system/status 503', `/${'x'.repeat(199)}… 404`])
})

test('a tool call that fails while nobody waits for it is in the line of its request, or in one that follows', async () => {
  const { log, sent } = await logOf(false)
  const requests = new RequestLog((line) => log.request(line), 60_000)
  const end = (id: string, status: number): void =>
    requests.ended(observed(id, `/${id}`, 'shop.Buy'), status, exactMs())
  requests.unawaited('open', 'db.execute at buy.ts:3:5')
  end('open', 200)
  end('held', 201)
  end('fine', 200)
  requests.unawaited('held', 'db.execute at buy.ts:3:5')
  requests.unawaited('held', 'event_bus.publish at buy.ts:4:5')
  requests.unawaited('nobody', 'db.execute at buy.ts:3:5')
  assert.equal(sent(), '', 'the lines wait')
  requests.flush()
  requests.unawaited('fine', 'state.set at buy.ts:5:5')
  const lines = [
    'POST    /open 200 .* ms  shop.Buy  failed, not awaited: db.execute at buy.ts:3:5',
    'POST    /held 201 .* ms  shop.Buy  failed, not awaited: db.execute at buy.ts:3:5, event_bus.publish at buy.ts:4:5',
    'POST    /fine 200 .* ms  shop.Buy',
    'POST    /fine 200 .* ms  shop.Buy  later failed, not awaited: state.set at buy.ts:5:5',
  ]
  assert.match(sent(), new RegExp(`^${lines.map((line) => `${TIME} ${line}\n`).join('')}$`))
})

test('of several processes on one terminal each line begins with the number of its process', async () => {
  let sent = ''
  const several = { PROCESSES: '2', NODE_APP_INSTANCE: '1', AUTH_SECRET_KEY: 'x'.repeat(32) }
  const { settings } = loadSettings({ LOG_FORMAT: 'pretty', ...several })
  const terminal = new Terminal(
    (text) => (sent += text),
    false,
    {},
    () => 80,
  )
  const log = createLog(settings, terminal)
  log.write({ level: 'INFO', message: 'Ready', timestampMs: Date.now(), identity: 'main' })
  assert.match(sent, new RegExp(`^${TIME} INFO: 1 {2}main {2}Ready\n$`))
})

test('of several processes on one pipe lines stay whole while its reader is slow', () => {
  const pieces: string[] = []
  let isFull = true
  const output = new LogOutput({
    maxBytes: 1_000_000,
    pieceBytes: WHOLE_PIECE_BYTES,
    write: (bytes) => {
      if (isFull) throw Object.assign(new Error('no room'), { code: 'EAGAIN' })
      pieces.push(String(bytes))
      return Buffer.byteLength(bytes)
    },
  })
  const lines = [
    ...Array.from({ length: 20 }, (_, n) => `${n} ${'é'.repeat(500)}\n`),
    `${'x'.repeat(9000)}\n`,
    'last\n',
  ]
  for (const line of lines) output.write(line, 'INFO')
  isFull = false
  output.flush()
  assert.equal(pieces.join(''), lines.join(''))
  assert.ok(pieces.every((piece) => piece.endsWith('\n')))
  const large = pieces.filter((piece) => Buffer.byteLength(piece) > WHOLE_PIECE_BYTES)
  assert.deepEqual(large, [lines.at(-2)], 'a line that is longer alone')
})

/** Everything by which a text could take over a terminal, or look like another record. */
const HOSTILE =
  'x\x1b[2J\x1b]0;title\x07\r\x9b31m\x7f\u202e\u2028\u2066\ufeff\n[12:00:00.000] ERROR: FORGED\nERROR FORGED'
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const OBEYED = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/

const hostileRecord = {
  level: 'ERROR' as const,
  message: `/login failed: ${HOSTILE}`,
  timestampMs: Date.now(),
  identity: 'a.B',
  fields: {
    host: HOSTILE,
    [HOSTILE]: 1,
    list: [HOSTILE],
    stack: `Error: ${HOSTILE}\n    at a.ts:1:1`,
    fix: HOSTILE,
    type: 'Error',
  },
}

test('a text of a client takes over no terminal, and looks like no record of its own', async () => {
  const { log, sent } = await logOf(true, { NO_COLOR: '1' })
  log.write(hostileRecord)
  log.request({ ...REQUEST, status: 200, path: '/a' })
  const lines = sent().trimEnd().split('\n')
  for (const line of lines) assert.ok(!OBEYED.test(line), JSON.stringify(line))
  const atMargin = lines.filter((line) => !line.startsWith('  '))
  assert.equal(atMargin.length, 2, sent())
  assert.match(sent(), /failed: x\\u001b\[2J\\u001b\]0;title\\u0007\\u000d\\u009b31m\\u007f\\u202e/)
})

test('in JSON such a text is the same value, in characters that no terminal obeys', async () => {
  let line = ''
  const { settings } = loadSettings({ LOG_FORMAT: 'json' })
  const log = createLog(settings)
  log.output.write = (text: string) => {
    line += text
  }
  log.write(hostileRecord)
  assert.equal(line.indexOf('\n'), line.length - 1)
  assert.ok(!OBEYED.test(line.trimEnd()), JSON.stringify(line))
  const { msg, host } = JSON.parse(line)
  assert.deepEqual([msg, host], [hostileRecord.message, HOSTILE])
})
