/** Watchers of an event hear how it stands, also after a reload, in another process, and after the death of one. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { FollowedEvent } from '../../../src/contracts/event-bus.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { onPostgres, onSqlite } from '../event-store/databases.ts'

const DOMAINS = fileURLToPath(new URL('../../fixtures/followed', import.meta.url))
const IMPORTS = 'work.Imports.importRows'

const publish = async (heddle: Heddle, event: string, data: object, options = {}): Promise<string> =>
  (await heddle.post('/publish', { event, data, options })).body.id
const gate = (heddle: Heddle, open: boolean) => heddle.post('/gate', { open })

/** A browser's EventSource, until it is closed. */
class Watcher {
  readonly items: FollowedEvent[] = []
  status = 0
  isOver = false
  readonly #gone = new AbortController()

  static async on(t: TestContext, heddle: Heddle, id: string, from?: string): Promise<Watcher> {
    const watcher = new Watcher()
    t.after(() => watcher.close())
    const response = await fetch(`${heddle.url}/follow/${id}`, {
      headers: from === undefined ? {} : { 'last-event-id': from },
      signal: watcher.#gone.signal,
    })
    watcher.status = response.status
    assert.ok(response.status !== 200 || response.headers.get('content-type') === 'text/event-stream')
    void watcher.#read(response.body).catch(() => {})
    return watcher
  }

  async #read(body: ReadableStream<Uint8Array> | null): Promise<void> {
    let text = ''
    for await (const chunk of body ?? []) {
      text += Buffer.from(chunk).toString()
      const frames = text.split('\n\n')
      text = frames.pop()!
      for (const frame of frames) {
        const [, id, json] = /^id: (.*)\ndata: (.*)$/.exec(frame) ?? []
        if (json !== undefined) this.items.push({ id, ...JSON.parse(json) })
      }
    }
    this.isOver = true
  }

  get last(): FollowedEvent | undefined {
    return this.items.at(-1)
  }

  get runs(): unknown[] {
    return this.items.flatMap(({ chunk, run }) => (chunk === undefined ? [] : [run]))
  }

  get chunks(): unknown[] {
    return this.items.flatMap(({ chunk }) => (chunk === undefined ? [] : [chunk]))
  }

  async ended(): Promise<FollowedEvent> {
    await until(() => this.isOver, 'the end of the stream')
    return this.last!
  }

  close(): void {
    this.#gone.abort()
  }
}

const rowsOf = (attempt: number, from: number, to: number): object[] =>
  Array.from({ length: to - from + 1 }, (_, n) => ({ row: from + n, attempt }))

const STORES: [string, (t: TestContext) => Promise<(() => Promise<Heddle>) | null>][] = [
  [
    'in_process',
    async (t) => () => startHeddle(t, { domains: [DOMAINS], lanes: 1, env: { EVENT_BUS_DRIVER: 'in_process' } }),
  ],
  ['SQLite', async (t) => (await onSqlite(t, DOMAINS))!.start],
  ['PostgreSQL', async (t) => (await onPostgres(t, false, DOMAINS))?.start ?? null],
]

for (const [where, startOf] of STORES) {
  test(`who comes back has missed nothing (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    await gate(heddle, false)
    const id = await publish(heddle, 'import.wanted', { rows: 30 })
    const first = await Watcher.on(t, heddle, id)
    await until(() => first.chunks.length === 2, 'the first two rows')
    assert.deepEqual(first.last, { ...first.last, subscriber: IMPORTS, state: 'running', attempt: 1 })
    const { id: from } = first.last!
    first.close()
    await gate(heddle, true)
    const second = await Watcher.on(t, heddle, id, from)
    const end = await second.ended()
    assert.deepEqual(second.chunks, rowsOf(1, 3, 30))
    assert.deepEqual([end.state, end.done, end.of, end.note, end.result], ['done', 30, 30, 'row 30', { imported: 30 }])
    // The browser asks again, and is told that there is no more.
    assert.equal((await Watcher.on(t, heddle, id, end.id)).status, 204)
    const whole = await Watcher.on(t, heddle, id)
    assert.deepEqual((await whole.ended()).result, { imported: 30 })
    assert.deepEqual(whole.chunks, rowsOf(1, 1, 30))
  })

  test(`waiting, another attempt, done, dead, cancelled (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    const later = await publish(heddle, 'import.wanted', { rows: 1 }, { delayMs: 600_000 })
    const delayed = await Watcher.on(t, heddle, later)
    await until(() => delayed.items.length > 0, 'the first item')
    assert.equal(delayed.last!.state, 'waiting')
    await heddle.post('/cancel', { id: later })
    assert.equal((await delayed.ended()).state, 'cancelled')
    const twice = await Watcher.on(t, heddle, await publish(heddle, 'import.wanted', { rows: 3, fails: 'once' }))
    const end = await twice.ended()
    assert.deepEqual([end.state, end.attempt, end.result], ['done', 2, { imported: 3 }])
    assert.deepEqual(twice.chunks.slice(-3), rowsOf(2, 1, 3))
    assert.deepEqual(twice.runs.slice(-3), [2, 2, 2])
    const dead = await Watcher.on(t, heddle, await publish(heddle, 'import.wanted', { rows: 3, fails: true }))
    const failed = await dead.ended()
    assert.deepEqual([failed.state, failed.error, failed.attempt], ['dead', 'as wanted', 2])
    await gate(heddle, false)
    const running = await publish(heddle, 'import.wanted', { rows: 3 })
    const watcher = await Watcher.on(t, heddle, running)
    await until(() => watcher.chunks.length === 2, 'the handler')
    await heddle.post('/cancel', { id: running })
    const { state, run, error } = await watcher.ended()
    assert.deepEqual([state, run, error], ['cancelled', 1, undefined])
  })

  test(`results are kept where the subscriber wants it, and nothing is known of what never was (${where})`, async (t) => {
    const start = await startOf(t)
    if (start === null) return t.skip('no such server')
    const heddle = await start()
    const items = async (id: string) => (await heddle.json(`/items/${id}`)).body
    const sum = await publish(heddle, 'sum.wanted', { a: 1, b: 2 })
    await until(async () => (await items(sum)).items?.at(-1)?.result?.sum === 3, 'the result')
    const never = `evt_${'0'.repeat(32)}`
    assert.deepEqual(await items(never), { code: 'EVENT_UNKNOWN' })
    assert.equal((await heddle.json(`/follow/${never}`)).status, 404)
    assert.deepEqual(await items('nonsense'), { code: 'EVENT_UNKNOWN' })
    // A text without an end, and one that PostgreSQL does not take.
    for (const id of ['nonsense', 'x'.repeat(2000), 'a%00b'])
      assert.equal((await heddle.json(`/follow/${id}`)).status, id.includes('%') ? 400 : 404)
    const wrong = (await items(await publish(heddle, 'wrong.wanted', {}))).items
    assert.deepEqual(wrong.at(-1).result, [
      ...Array(4).fill('EVENT_OPTIONS_INVALID'),
      'EVENT_PAYLOAD_TOO_LARGE',
      ...Array(2).fill('EVENT_PAYLOAD_INVALID'),
    ])
    const chunks = wrong.filter(({ chunk }: FollowedEvent) => chunk !== undefined)
    assert.deepEqual([chunks.length, chunks[0].chunk, chunks[0].missed, chunks.at(-1).chunk], [1000, 500, 500, 1499])
    const large = (await items(await publish(heddle, 'large.wanted', {}))).items.at(-1)
    assert.deepEqual([large.state, large.result], ['done', undefined])
    assert.ok(heddle.logs.some(({ msg }) => /The result of evt_\w+ is not kept/.test(msg)))
  })
}

test('another process tells the same, and goes on when the first is killed', async (t) => {
  const store = await onPostgres(t, false, DOMAINS)
  if (store === null) return t.skip('no PostgreSQL')
  const [first, second] = [await store.start({ REPLICA_ID: 'a' }), await store.start({ REPLICA_ID: 'b' })] as [
    Heddle,
    Heddle,
  ]
  await Promise.all([first, second].map((heddle) => gate(heddle, false)))
  const id = await publish(first, 'import.wanted', { rows: 10 })
  const begun = (heddle: Heddle): boolean => heddle.logs.some(({ msg }) => msg.includes(`${id} has begun`))
  await until(() => begun(first) || begun(second), 'the handler')
  const [holder, other] = begun(first) ? [first, second] : [second, first]
  const watcher = await Watcher.on(t, other, id)
  await until(() => watcher.chunks.length === 2, 'the first rows')
  await gate(other, true)
  await holder.stop('SIGKILL')
  await until(() => watcher.isOver, 'the end in the other process', 60_000)
  const { state, result } = watcher.last!
  assert.deepEqual([state, result], ['done', { imported: 10 }])
  assert.deepEqual(watcher.chunks.slice(0, 2), rowsOf(1, 1, 2))
  assert.deepEqual(
    watcher.chunks.slice(-10).map((chunk) => (chunk as { row: number }).row),
    rowsOf(0, 1, 10).map((each) => (each as { row: number }).row),
  )
  // The attempt is the same, so only this tells that the rows begin anew.
  assert.deepEqual(watcher.runs, [1, 1, ...Array(10).fill(2)])
})
