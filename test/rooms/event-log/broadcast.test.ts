import assert from 'node:assert/strict'
import { connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { isEmpty, kill } from './databases.ts'
import { Steps } from './steps.ts'

const KEY = { key: 'k' }

test('a broadcast reaches the threads of every living process, and in the order of its key', async (t) => {
  const steps = await Steps.make(t)
  if (steps === null) return
  const [first, second] = await Promise.all([steps.start('first'), steps.start('second', { LANES: '2' })])
  const third = await steps.start('third')
  await steps.areReady(3)
  const tell = (to: typeof first, number: number, options: object = {}) =>
    post(to!, '/steps', { event: 'all.told', step: { number }, options, bare: number % 2 === 0 })
  const told = async (number: number) =>
    (await steps.notes())
      .flatMap((note) => (note.what === 'end' && note.number === number ? [note.replica] : []))
      .sort()
  await tell(first, 1)
  await until(async () => (await told(1)).length >= 4, 'the first one told')
  assert.deepEqual(await told(1), ['first', 'second', 'second', 'third'])
  for (let number = 2; number < 12; number++) await tell([first, second, third][number % 3], number, KEY)
  await until(async () => (await told(11)).length >= 4, 'the last one told')
  const seen = (await steps.notes()).flatMap((note) =>
    note.replica === 'first' && note.what === 'begin' && note.number > 1 ? [note.number] : [],
  )
  assert.deepEqual(seen, [2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
  await isEmpty(steps.store)

  await kill(third)
  await until(
    async () => (await steps.store.rows('SELECT 1 FROM heddle_process')).length === 2,
    'the third one taken over',
  )
  await tell(second, 12)
  await until(async () => (await told(12)).length >= 3, 'the two that are left')
  assert.deepEqual(await told(12), ['first', 'second', 'second'])
  await isEmpty(steps.store)
  assert.deepEqual(await steps.store.rows('SELECT * FROM heddle_copy'), [])
})

/** Passes everything on, but for the first answer with this text: its connection breaks before. */
async function cuttingProxy(t: TestContext, port: number, text: string) {
  const sockets = new Set<Socket>()
  let cuts = 0
  const proxy = createServer((client) => {
    const server = connect(port, '127.0.0.1')
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => (socket === client ? server : client).destroy())
    }
    client.pipe(server)
    server.on('data', (bytes) => {
      if (cuts > 0 || !bytes.includes(text)) return void client.write(bytes)
      cuts++
      client.destroy()
    })
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => proxy.close(resolve))
  })
  return { port: (proxy.address() as { port: number }).port, cuts: () => cuts }
}

test('a broadcast is not lost when the connection breaks while a process reads it', async (t) => {
  const steps = await Steps.make(t)
  if (steps === null) return
  const proxy = await cuttingProxy(t, steps.store.server!.port, 'told over there')
  const first = await steps.start('first')
  await steps.start('second', { RDB_HOST: '127.0.0.1', RDB_PORT: String(proxy.port) })
  await steps.areReady(2)
  await post(first, '/steps', { event: 'all.told', step: { number: 1, note: 'told over there' }, bare: true })
  const told = async () => (await steps.notes()).filter(({ what }) => what === 'end').map(({ replica }) => replica)
  await until(async () => (await told()).length >= 2, 'both told')
  assert.deepEqual((await told()).sort(), ['first', 'second'])
  assert.equal(proxy.cuts(), 1)
  await isEmpty(steps.store)
})
