// Many clients that say nothing, or read nothing, cost little and hurt nobody. One stream client that does not read: test/claims/slow-client.test.ts.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { IDLE_CONNECTION_MAX_BYTES } from '../../support/listener.ts'
import { ask, jsonOf, requestText } from '../../support/raw-client.ts'
import { assertAnswers, shareHeddle } from '../../support/shared-process.ts'
import { until } from '../../support/until.ts'
import { residentBytes, TARGET_DOMAINS } from './target.ts'

const IDLE = 2_000
const WARM_UP = 500
const SLOW = 200
const DEAF = 20
const DEAF_BYTES = 8_000_000
/** The library's 12 s for a head or silence, the runtime's 7 s for a body, and what a busy machine adds. */
const SLOW_MAX_MS = 20_000
const KEEP_ALIVE_MS = 8_000
/** How late this process reads and sees that an idle connection is closed is the machine's. */
const IDLE_MIN_MS = 5_000

const heddle = shareHeddle({ env: { DOMAINS_DIR: TARGET_DOMAINS, HTTP_KEEP_ALIVE_MS: String(KEEP_ALIVE_MS) } })

async function openConnections(): Promise<number> {
  const { body } = await ask(heddle.port, 'GET', '/system/metrics/prometheus')
  return Number(/^heddle_http_connections\{\} (\d+)$/m.exec(body.toString())![1])
}

/** The soft limit of open files, here and (inherited) in the process under test. */
function maxOpenFiles(): number {
  const text = execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).trim()
  return text === 'unlimited' ? Infinity : Number(text)
}

/** Connections that say something and then nothing. They leave with the test. */
class Crowd {
  readonly sockets: Socket[] = []
  closed = 0
  answered = 0
  /** All that came to each, when it is closed. */
  readonly told: string[] = []
  /** The shortest time from an answer to the end of its connection, milliseconds. */
  shortestIdleMs = Number.POSITIVE_INFINITY

  constructor(t: TestContext) {
    t.after(() => this.leave())
  }

  leave(): void {
    for (const socket of this.sockets) socket.destroy()
  }

  /** A hundred at a time: the kernel's queue of those that wait to be accepted is not the matter here. */
  async join(count: number, first: string | ((thread: 'w' | 'p') => string)): Promise<void> {
    const textOf = (n: number) => (typeof first === 'string' ? first : first(n % 2 ? 'w' : 'p'))
    for (let n = 0; n < count; n += 100) {
      await Promise.all(Array.from({ length: Math.min(100, count - n) }, (_, at) => this.#enter(textOf(at))))
    }
  }

  async #enter(first: string): Promise<void> {
    const socket = connect(heddle.port, '127.0.0.1')
    socket.on('error', () => {})
    let heardMs = 0
    let text = ''
    socket.on('close', () => {
      this.closed++
      this.told.push(text)
      if (heardMs > 0) this.shortestIdleMs = Math.min(this.shortestIdleMs, performance.now() - heardMs)
    })
    socket.on('data', (bytes: Buffer) => {
      if (text === '') this.answered++
      text += bytes.toString('latin1')
      heardMs = performance.now()
    })
    this.sockets.push(socket)
    await once(socket, 'connect')
    if (first !== '') socket.write(first, 'latin1')
  }

  say(text: string): void {
    for (const socket of this.sockets) if (socket.writable) socket.write(text, 'latin1')
  }
}

/** Asks as anybody else would, until told to stop. */
class Bystander {
  #isOver = false
  #refused = 0
  readonly #tookMs: number[] = []
  readonly #done: Promise<void>
  readonly #pauseMs: number

  constructor(pauseMs = 20) {
    this.#pauseMs = pauseMs
    this.#done = this.#ask()
  }

  async #ask(): Promise<void> {
    while (!this.#isOver) {
      for (const target of ['/w/echo', '/p/echo', '/system/health/ready']) {
        const startedMs = performance.now()
        const { status } = await ask(heddle.port, 'GET', target)
        if (status === 503) this.#refused++
        else assert.equal(status, 200, target)
        this.#tookMs.push(performance.now() - startedMs)
      }
      await new Promise((resolve) => setTimeout(resolve, this.#pauseMs))
    }
  }

  get answers(): number {
    return this.#tookMs.length
  }

  /** Fails when some answer was not in normal time; resolves with what it saw. */
  async stop(): Promise<string> {
    this.#isOver = true
    await this.#done
    this.#tookMs.sort((a, b) => a - b)
    const at = (share: number): number => this.#tookMs[Math.floor(share * (this.#tookMs.length - 1))]!
    // A machine that others use too lets a lane stand still now and then.
    assert.ok(this.#refused <= this.answers / 50, `${this.#refused} of ${this.answers} were refused`)
    assert.ok(at(0.5) < 100, `half of the answers took more than ${at(0.5)} ms`)
    assert.ok(at(1) < 5_000, `an answer took ${at(1)} ms`)
    const [median, worst] = [at(0.5).toFixed(1), at(1).toFixed(0)]
    return `${this.#tookMs.length} answers to a bystander: median ${median} ms, slowest ${worst} ms`
  }
}

describe('a crowd', () => {
  it(`of ${IDLE} idle connections costs little memory and nobody's time`, { timeout: 60_000 }, async (t) => {
    const hello = requestText('GET', '/w/echo').toString('latin1')
    if (maxOpenFiles() < IDLE + WARM_UP + 500) return t.skip(`only ${maxOpenFiles()} files may be open`)
    // What the process takes for its first requests it takes once.
    const first = new Crowd(t)
    await first.join(WARM_UP, hello)
    await until(() => first.answered === WARM_UP, 'the first are answered', 30_000)
    first.leave()
    const crowd = new Crowd(t)
    await assertAnswers(heddle.port)
    const before = await residentBytes(heddle.pid)
    const bystander = new Bystander()
    await crowd.join(IDLE, hello)
    await until(() => crowd.answered === IDLE, 'all are answered once', 30_000)
    if (before !== undefined) {
      const perConnection = ((await residentBytes(heddle.pid))! - before) / IDLE
      t.diagnostic(`${(perConnection / 1024).toFixed(1)} KiB of memory per connection`)
      assert.ok(perConnection < IDLE_CONNECTION_MAX_BYTES, `${perConnection} bytes per connection`)
    }
    await until(() => bystander.answers > 300, 'a hundred rounds of a bystander while they sit there')
    // Those that are still there are still served.
    const oldest = crowd.sockets.find(({ writable }) => writable)
    if (oldest?.write(requestText('GET', '/w/echo'))) await Promise.race([once(oldest, 'data'), once(oldest, 'close')])
    t.diagnostic(await bystander.stop())
    await until(() => crowd.closed === IDLE, 'the idle ones are cut off', SLOW_MAX_MS)
    t.diagnostic(`the first was cut off after ${Math.round(crowd.shortestIdleMs)} ms`)
    assert.ok(crowd.shortestIdleMs > IDLE_MIN_MS, `${crowd.shortestIdleMs} ms`)
  })

  it('of frames in one turn reaches a stream whole, or the stream ends early; it has no holes', async (t) => {
    for (const [target, frames] of [
      ['/p/burst', 1_000],
      ['/w/burst', 1_000],
      ['/w/burst', 60_000],
    ] as const) {
      const socket = connect(heddle.port, '127.0.0.1')
      t.after(() => socket.destroy())
      const reader = new StreamReader(socket)
      socket.write(requestText('GET', `${target}?frames=${frames}`))
      await until(() => reader.isEnded, 'the stream ends')
      assert.equal(reader.fault, '')
      t.diagnostic(`${target}: ${reader.next} of ${frames} frames`)
      if (frames === 1_000) assert.equal(reader.next, frames)
    }
  })
})

describe('a crowd that waits', { concurrency: true }, () => {
  it(`of ${2 * SLOW} heads and ${3 * SLOW} bodies that come byte by byte, or not at all, is cut off and hurts nobody`, {
    timeout: 60_000,
  }, async (t) => {
    if (maxOpenFiles() < 5 * SLOW + 500) return t.skip(`only ${maxOpenFiles()} files may be open`)
    const bystander = new Bystander(100)
    const [silent, heads] = [new Crowd(t), new Crowd(t)]
    const [mute, lengths, chunks] = [new Crowd(t), new Crowd(t), new Crowd(t)]
    const all = [silent, heads, mute, lengths, chunks]
    const begun = (method: string, headers: string) => (thread: string) =>
      `${method} /${thread}/count/slow-crowd HTTP/1.1\r\nhost: test\r\n${headers}`
    await silent.join(SLOW, '')
    await heads.join(SLOW, begun('GET', 'x-slow: '))
    await mute.join(SLOW, begun('POST', 'content-length: 5\r\n\r\n'))
    await lengths.join(SLOW, begun('POST', 'content-length: 1000\r\n\r\n'))
    await chunks.join(SLOW, begun('POST', 'transfer-encoding: chunked\r\n\r\n'))
    const drip = setInterval(() => {
      heads.say('x')
      lengths.say('x')
      chunks.say('1\r\nx\r\n')
    }, 1_000)
    t.after(() => clearInterval(drip))
    await until(() => all.every(({ closed }) => closed === SLOW), 'all are cut off', SLOW_MAX_MS)
    clearInterval(drip)
    for (const text of [...silent.told, ...heads.told]) assert.match(text, /^$|^HTTP\/1\.1 408 /)
    // More than one address may have.
    const late =
      /^HTTP\/1\.1 (?:408 [\s\S]*"The request body did not arrive in time"|503 [\s\S]*"Too many uploads are under way")/
    for (const text of [...mute.told, ...lengths.told, ...chunks.told]) assert.match(text, late)
    t.diagnostic(await bystander.stop())
    assert.equal(jsonOf(await ask(heddle.port, 'GET', '/w/state/slow-crowd:runs')).data, null)
  })

  it(`of ${DEAF} clients that never read their answers is given up after some seconds`, {
    timeout: 120_000,
  }, async (t) => {
    const bystander = new Bystander()
    const deaf: Socket[] = []
    for (let n = 0; n < DEAF; n++) {
      const socket = connect(heddle.port, '127.0.0.1')
      t.after(() => socket.destroy())
      socket.on('error', () => {})
      socket.pause()
      await once(socket, 'connect')
      // More than the kernel takes for somebody who does not read.
      socket.write(requestText('GET', `/${n % 2 ? 'w' : 'p'}/large/${DEAF_BYTES}`))
      deaf.push(socket)
    }
    await until(() => bystander.answers > 100, 'others are served meanwhile')
    t.diagnostic(await bystander.stop())
    // With its connection goes what the kernel has not taken: the whole answer, once for each.
    await until(async () => (await openConnections()) < DEAF / 2, 'they are given up', 45_000)
    for (const socket of deaf) socket.resume()
    await until(() => deaf.every(({ closed }) => closed), 'they find their connections closed', SLOW_MAX_MS)
  })
})

/** Reads numbered frames and finds holes. */
class StreamReader {
  /** The number that is to come. */
  next = 0
  fault = ''
  isEnded = false
  #tail = ''

  constructor(socket: Socket) {
    socket.on('data', (chunk: Buffer) => this.#read(chunk.toString('latin1')))
  }

  #read(text: string): void {
    const all = this.#tail + text
    let from = 0
    for (const { 1: number, 0: start, index } of all.matchAll(/"n":(\d+)[,}]/g)) {
      if (Number(number) !== this.next && this.fault === '') this.fault = `${number} came instead of ${this.next}`
      this.next++
      from = index + start.length
    }
    if (all.endsWith('\r\n0\r\n\r\n')) this.isEnded = true
    this.#tail = all.slice(Math.max(from, all.length - 40))
  }
}
