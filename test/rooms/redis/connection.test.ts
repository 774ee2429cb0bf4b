import assert from 'node:assert/strict'
import { once } from 'node:events'
import { appendFile } from 'node:fs/promises'
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Settings } from '../../../src/core/config/schema.ts'
import { freePort } from '../../support/port.ts'
import { connect, settingsOf, sharedServer } from '../../support/redis-under-test.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { testWith } from '../../support/test-with.ts'
import { until } from '../../support/until.ts'

const testOnOwn = testWith((t) => redisServer(t, { own: true }))
const shared = sharedServer()
const testShared = testWith(shared)
const LOCAL = { KV_HOST: '127.0.0.1', KV_PASSWORD: '' }

testShared(
  'commands that are called at once wait for the connection, and are sent in their order',
  async (server, t) => {
    const client = connect(t, settingsOf(server), { name: 'heddle:a replica:one' })
    const replies = await Promise.all([
      client.command('set', ['order', 'a']),
      client.command('append', ['order', 'b']),
      client.command('append', ['order', 'c']),
      client.command('get', ['order']),
    ])
    assert.deepEqual(replies, ['OK', 2, 3, 'abc'])
    assert.equal(await client.command('client', ['GETNAME']), 'heddle:a_replica:one')
    assert.deepEqual(client.logs, [])
    await client.command('del', ['order'])
  },
)

testOnOwn('a lost connection rejects at once and says why, and heals by itself', async (server, t) => {
  const client = connect(t, settingsOf(server))
  await client.command('ping', [])
  await server.stop()
  await assert.rejects(client.command('ping', []), { code: 'KV_UNAVAILABLE' })
  await until(() => /nothing listens there/.test(client.fault?.message ?? ''), 'the reason is known')
  const startedMs = performance.now()
  for (let call = 0; call < 1000; call++) {
    await assert.rejects(client.command('ping', []), {
      code: 'KV_UNAVAILABLE',
      message: /nothing listens there; start it, or correct KV_HOST and KV_PORT/,
      details: { outcome: 'not sent' },
    })
  }
  assert.ok(performance.now() - startedMs < 4000, 'a thousand rejections do not wait')
  await server.start()
  await until(() => client.isReady, 'connected again')
  assert.equal(await client.command('ping', []), 'PONG')
  const levels = client.logs.map(({ level }) => level)
  assert.deepEqual([levels[0], levels.at(-1), levels.length <= 4], ['WARNING', 'INFO', true])
})

testOnOwn('a connection that comes and goes does not flood the log', async (server, t) => {
  const [admin, client] = [connect(t, settingsOf(server)), connect(t, settingsOf(server))]
  let ups = 0
  client.onUp(() => ups++)
  for (let kill = 1; kill <= 20; kill++) {
    await until(() => ups === kill, 'up')
    await admin.command('client', ['KILL', 'TYPE', 'normal', 'SKIPME', 'yes'])
  }
  await until(() => ups === 21, 'up at last')
  assert.ok(client.logs.length <= 6, JSON.stringify(client.logs))
})

testOnOwn('a frozen server costs a call the command timeout, and later calls nothing', async (server, t) => {
  const client = connect(t, settingsOf(server, { KV_CONNECT_TIMEOUT: '0.5' }), { commandTimeoutMs: 400 })
  await client.command('ping', [])
  server.freeze()
  await assert.rejects(client.command('incrby', ['n', 1]), {
    code: 'KV_UNAVAILABLE',
    message: /it has not answered for 400 ms/,
    details: { outcome: 'unknown' },
  })
  const startedMs = performance.now()
  await assert.rejects(client.command('ping', []), { details: { outcome: 'not sent' } })
  assert.ok(performance.now() - startedMs < 400)
  await until(
    () => /does not answer: it may be frozen/.test(client.fault!.message),
    'a new connection stays silent too',
  )
  server.thaw()
  await until(() => client.isReady, 'connected again')
  assert.equal(await client.command('ping', []), 'PONG')
})

testShared('a thread that was held up itself does not take the server for gone', async (server, t) => {
  const client = connect(t, settingsOf(server), { commandTimeoutMs: 200 })
  await client.command('ping', [])
  const reply = client.command('ping', [])
  await sleep(0)
  for (const endMs = performance.now() + 700; performance.now() < endMs; );
  assert.equal(await reply, 'PONG')
  assert.equal(client.isReady, true)
})

testShared('a reply that takes long to arrive is waited for', async (server, t) => {
  const settings = settingsOf(server)
  await connect(t, settings).command('set', ['large', 'x'.repeat(64 * 1024 * 1024)])
  const client = connect(t, { ...settings, ...(await slowLink(t, settings)) }, { commandTimeoutMs: 600 })
  assert.equal(await client.command('strlen', ['large']), 64 * 1024 * 1024)
  const startedMs = performance.now()
  assert.equal((await client.command<string>('get', ['large'])).length, 64 * 1024 * 1024)
  assert.ok(performance.now() - startedMs > 600, 'longer than the command timeout')
  await client.command('unlink', ['large'])
})

/** The way to the server, a megabyte every 20 ms. */
async function slowLink(t: TestContext, { kvHost, kvPort }: Settings): Promise<Pick<Settings, 'kvHost' | 'kvPort'>> {
  const server = createServer((near) => {
    const far = createConnection({ host: kvHost, port: kvPort })
    near.pipe(far)
    let readBytes = 0
    far.on('data', (chunk: Buffer) => {
      near.write(chunk)
      readBytes += chunk.length
      if (readBytes < 1024 * 1024) return
      readBytes = 0
      far.pause()
      setTimeout(() => far.resume(), 20)
    })
    for (const socket of [near, far]) {
      socket.on('error', () => {})
      socket.on('close', () => [near, far].forEach((end) => void end.destroy()))
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => void server.close())
  return { kvHost: '127.0.0.1', kvPort: (server.address() as AddressInfo).port }
}

const WRONG: [what: string, env: Record<string, string>, code: string, message: RegExp][] = [
  ['a wrong password', { KV_PASSWORD: 'geheim' }, 'KV_REFUSED', /refuses the password; correct KV_PASSWORD/],
  ['no password', { KV_PASSWORD: '' }, 'KV_REFUSED', /requires a password; set KV_PASSWORD/],
  ['a database that is not there', { KV_DB: '4711' }, 'KV_REFUSED', /no database 4711; correct KV_DB/],
  ['an unknown host', { KV_HOST: 'nowhere.invalid' }, 'KV_UNAVAILABLE', /nowhere\.invalid .*correct.*KV_HOST/],
  ['a port that nobody has', { KV_PORT: '1' }, 'KV_UNAVAILABLE', /nothing listens there; .*KV_HOST and KV_PORT/],
]
for (const [what, env, code, message] of WRONG) {
  testShared(`${what} is told as what it is, and not in every attempt`, async (server, t) => {
    const client = connect(t, settingsOf(server, env))
    for (let call = 0; call < 2; call++) {
      await assert.rejects(client.command('set', ['key', 'value']), (error: Error & { code: string }) => {
        assert.equal(error.code, code)
        assert.match(error.message, message)
        assert.doesNotMatch(JSON.stringify([error.message, error.stack, error.cause, String(error.cause)]), /geheim/)
        return true
      })
      await sleep(400) // several attempts
    }
    assert.deepEqual(
      client.logs.map(({ level }) => level),
      ['WARNING'],
    )
    assert.match(client.logs[0]!.message, message)
  })
}

testOnOwn('a password that is mended later is taken without a restart', async (server, t) => {
  const [admin, client] = [connect(t, settingsOf(server)), connect(t, settingsOf(server, { KV_PASSWORD: 'tomorrow' }))]
  await assert.rejects(client.command('ping', []), { code: 'KV_REFUSED' })
  await admin.command('config', ['SET', 'requirepass', 'tomorrow'])
  await until(() => client.isReady, 'let in')
  assert.equal(await client.command('ping', []), 'PONG')
})

/** A server that is none of ours. */
async function otherServer(t: TestContext, onConnection: (socket: Socket) => void) {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    onConnection(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { env: { ...LOCAL, KV_PORT: String((server.address() as AddressInfo).port) } }
}

const OTHERS: [what: string, onConnection: (socket: Socket) => void, message: RegExp][] = [
  [
    'a web server',
    (socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
    /not a key-value store/,
  ],
  ['a mail server', (socket) => socket.write('220 mail ready\r\n'), /not a key-value store/],
  ['a server that hangs up', (socket) => socket.once('data', () => socket.destroy()), /closed|lost/],
  ['a server that says nothing', () => {}, /does not answer/],
]
for (const [what, onConnection, message] of OTHERS) {
  test(`${what} in the place of the store is a clear error`, async (t) => {
    const other = await otherServer(t, onConnection)
    const settings = settingsOf(other, { KV_CONNECT_TIMEOUT: '0.4' })
    const client = connect(t, settings, { commandTimeoutMs: 400 })
    const startedMs = performance.now()
    await assert.rejects(client.command('get', ['key']), { code: 'KV_UNAVAILABLE' })
    assert.ok(performance.now() - startedMs < 3000)
    await until(() => message.test(client.fault?.message ?? ''), `told: ${message}`)
  })
}

/** A way to the server on which something is said that nobody has asked for. */
async function interruptedLink(t: TestContext, server: Parameters<typeof settingsOf>[0]) {
  const { kvHost, kvPort } = settingsOf(server)
  const open = new Set<Socket>()
  const { env } = await otherServer(t, (near) => {
    const far = createConnection({ host: kvHost, port: kvPort })
    open.add(near)
    near.pipe(far).pipe(near)
    near.on('close', () => open.delete(near))
    for (const [end, other] of [
      [near, far],
      [far, near],
    ] as const)
      end.on('error', () => {}).on('close', () => other.destroy())
  })
  const say = (text: string): void => {
    for (const socket of open) socket.write(text)
  }
  return { settings: settingsOf(server, { KV_HOST: '127.0.0.1', KV_PORT: env.KV_PORT }), say }
}

const UNASKED = [
  '$-1',
  '*-1',
  '*-5',
  '_',
  '+OK',
  '-ERR no',
  ':7',
  '*0',
  '*1\r\n$-1',
  '*2\r\n$7\r\nmessage\r\n$-1',
  '$x',
  'garbage',
]

testShared('what the server says unasked ends that connection, and nothing else', async (server, t) => {
  const { settings, say } = await interruptedLink(t, server)
  const client = connect(t, settings)
  const listening = connect(t, settings)
  const heard: string[] = []
  await listening.subscribe('news', (message) => heard.push(message))
  for (const [n, text] of UNASKED.entries()) {
    await until(() => client.isReady && listening.isReady, 'both are up')
    say(`${text}\r\n`)
    await until(
      async () => {
        const answer = await client.command('publish', ['news', `${n}`]).catch(() => null)
        return answer !== null && heard.includes(`${n}`)
      },
      `both work again after ${JSON.stringify(text)}`,
    )
  }
})

test('an answer without end is given up before it fills the memory', async (t) => {
  let sentBytes = 0
  const chunk = Buffer.alloc(1024 * 1024, 'x')
  const settings = settingsOf(
    await otherServer(t, (socket) => {
      socket.once('data', () => {
        socket.write('$524288000\r\n')
        const fill = (): void => {
          while (!socket.destroyed && socket.write(chunk)) sentBytes += chunk.length
          if (!socket.destroyed) sentBytes += chunk.length
        }
        socket.on('drain', fill)
        fill()
      })
    }),
  )
  const client = connect(t, settings)
  await until(() => /longer than 268435456 bytes/.test(client.fault?.message ?? ''), 'given up')
  assert.ok(sentBytes < 320 * 1024 * 1024, `${sentBytes} bytes were taken`)
})

testOnOwn('while the server loads its data the first commands wait, and then say so', async (server, t) => {
  const writer = connect(t, settingsOf(server))
  await Promise.all(Array.from({ length: 2000 }, (_, n) => writer.command('set', [`key:${n}`, 'x'.repeat(100)])))
  await writer.command('save', [])
  await server.stop()
  // Two seconds for the lot, in which it looks after its clients now and then.
  const slow = 'key-load-delay 1000\nloading-process-events-interval-bytes 1024\n'
  await appendFile(join(server.directory, 'redis.conf'), slow)
  const started = server.start()
  const client = connect(t, settingsOf(server, { KV_CONNECT_TIMEOUT: '0.3' }))
  await until(() => /it is loading its data/.test(client.fault?.message ?? ''), 'the reason is known')
  await assert.rejects(client.command('ping', []), { code: 'KV_UNAVAILABLE', message: /loading its data/ })
  await until(() => client.isReady, 'loaded')
  assert.equal(await client.command('dbsize', []), 2000)
  await started
})

test('closing ends at once when it was never connected, when the server is frozen, and a second time', async (t) => {
  const never = connect(t, settingsOf({ env: { ...LOCAL, KV_PORT: String(await freePort()) } }))
  await never.close()
  await assert.rejects(never.command('ping', []), { code: 'KV_UNAVAILABLE', message: /closed/ })
  const server = await redisServer(t, { own: true })
  if (server === null) return
  const client = connect(t, settingsOf(server))
  const opening = connect(t, settingsOf(server))
  const waiting = assert.rejects(opening.command('ping', []), { code: 'KV_UNAVAILABLE' })
  await opening.close()
  await waiting
  await client.command('ping', [])
  server.freeze()
  const underWay = assert.rejects(client.command('ping', []), { details: { outcome: 'unknown' } })
  const startedMs = performance.now()
  await Promise.all([client.close(), client.close()])
  assert.ok(performance.now() - startedMs < 3000)
  await underWay
  server.thaw()
})

testShared('closing lets commands that are under way come to their end', async (server, t) => {
  const client = connect(t, settingsOf(server))
  await client.command('ping', [])
  const replies = Array.from({ length: 1000 }, () => client.command('ping', []))
  await client.close()
  assert.equal(new Set(await Promise.all(replies)).size, 1)
})

testShared('more commands than can be kept are refused, and those that are kept are answered', async (server, t) => {
  const client = connect(t, settingsOf(server))
  await client.command('ping', [])
  const results = await Promise.allSettled(Array.from({ length: 70_000 }, () => client.command('ping', [])))
  const refused = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
  assert.equal(refused.length, 70_000 - 65_536)
  assert.deepEqual([refused[0].code, refused[0].details], ['KV_UNAVAILABLE', { outcome: 'not sent' }])
})

testOnOwn('a script runs on a server that has forgotten it', async (server, t) => {
  const script = { lua: 'return ARGV[1]', sha: '098e0f0d1448c0a81dafe820f66d460eb09263da' }
  const client = connect(t, settingsOf(server), { scripts: [script] })
  assert.equal(await client.run(script, [], ['a']), 'a')
  await client.command('script', ['FLUSH'])
  assert.deepEqual(await Promise.all([client.run(script, [], ['b']), client.run(script, [], ['c'])]), ['b', 'c'])
})

testOnOwn('what was subscribed to is heard after a loss of the connection too', async (server, t) => {
  const [client, other] = [connect(t, settingsOf(server)), connect(t, settingsOf(server))]
  const heard: string[] = []
  const leave = await client.subscribe('news', (message) => void heard.push(message))
  await other.command('publish', ['news', 'one'])
  await until(() => heard.length === 1, 'heard')
  await server.stop()
  await until(() => !client.isReady && !other.isReady, 'lost')
  await server.start()
  await until(() => client.isReady && other.isReady, 'connected again')
  await until(async () => (await other.command('publish', ['news', 'two'])) === 1, 'subscribed again')
  await until(() => heard.includes('two'), 'heard again')
  leave()
  await until(async () => (await other.command('publish', ['news', 'three'])) === 0, 'left')
  assert.equal(heard.includes('three'), false)
})
