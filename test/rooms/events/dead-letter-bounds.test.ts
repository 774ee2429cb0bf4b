import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { DeadLetter } from '../../../src/contracts/event-bus.ts'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { shareService } from '../../support/shared-service.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'

const MAX_BYTES = 8 * 1024 * 1024
const PAGE_BYTES = 4 * 1024 * 1024

const FAIL = `export default class Fail {
  constructor({ http, event_bus }) {
    event_bus.subscribe('large.payload', () => { throw new Error('no') })
    event_bus.subscribe('large.error', () => { throw new Error('e'.repeat(3e6)) })
    event_bus.subscribe('large.keys', () => { throw new Error('no') })
    http.addEndpoint('/publish', 'POST', async ({ event, count, bytes = 0, keys = 0 }) => {
      const payload = { text: 'x'.repeat(bytes) }
      for (let n = 0; n < keys; n++) payload['key' + n] = 0
      const ids = []
      for (let n = 0; n < count; n++) ids.push(await event_bus.publish(event, payload))
      return { ids }
    })
  } }`

interface Page {
  letters: DeadLetter[]
  bytes: number
  next: string | null
}

describe('dead letters', () => {
  const service = shareService(async (owner) =>
    startHeddle(owner, {
      domains: [await folderOf(owner, { 'large/plugins/fail.ts': FAIL }), SHIPPED],
      lanes: 1,
      env: { EVENT_BUS_DRIVER: 'in_process', EVENT_BUS_MAX_DEAD_BYTES: String(MAX_BYTES) },
    }),
  )

  async function pageAt(path = '/system/dead-letters'): Promise<Page> {
    const response = await service().fetch(path)
    assert.equal(response.status, 200)
    const text = await response.text()
    const next = /^<([^>]+)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1] ?? null
    return { letters: JSON.parse(text), bytes: Buffer.byteLength(text), next }
  }

  /** Publishes, and waits until the last event is a letter. */
  async function fail(event: string, count: number, more: object): Promise<string[]> {
    const { ids } = await post(service(), '/publish', { event, count, ...more })
    const last = async () => (await pageAt('/system/dead-letters?limit=1')).letters[0]?.event_id === ids.at(-1)
    await until(last, 'the last letter', 30_000)
    return ids
  }

  async function dropped(): Promise<number> {
    const text = await (await service().fetch('/system/metrics/prometheus')).text()
    return Number(/^heddle_dead_letters_dropped_total\{\} (\d+)$/m.exec(text)![1])
  }

  it('are listed in pages, each letter once', async () => {
    const ids = await fail('large.payload', 25, { bytes: 10 })
    const all = (await pageAt()).letters
    assert.deepEqual(
      all.map(({ event_id }) => event_id),
      ids,
    )
    const paged: DeadLetter[] = []
    const sizes: number[] = []
    for (let path: string | null = '/system/dead-letters?limit=10'; path !== null; ) {
      const { letters, next }: Page = await pageAt(path)
      sizes.push(letters.length)
      paged.unshift(...letters)
      path = next
    }
    assert.deepEqual(sizes, [10, 10, 5])
    assert.deepEqual(paged, all)
    for (const query of ['limit=0', 'limit=1001', 'limit=x', 'before=x', 'limit=1&limit=2'])
      assert.equal((await service().fetch(`/system/dead-letters?${query}`)).status, 422, query)
  })

  it('have errors of a size that is told, so that the list stays small and quick', async () => {
    await fail('large.error', 40, {})
    const startMs = performance.now()
    const { letters, bytes } = await pageAt()
    assert.ok(performance.now() - startMs < 1000)
    assert.ok(bytes < PAGE_BYTES)
    const { error } = letters.at(-1)!
    assert.match(error, /^e{4000,}… \[cut: it had 3000000 characters\]$/)
    assert.ok(error.length <= 4096, String(error.length))
    const traces = (await service().json('/system/traces/flat')).body as { event: string }[]
    assert.ok(traces.some(({ event }) => event === 'event.delivery.failed'))
  })

  it('take so many bytes at most: the oldest go first, counted and told once', async () => {
    const ids = await fail('large.payload', 40, { bytes: 900_000 })
    const { letters } = await pageAt()
    const kept = letters.map(({ event_id }) => event_id)
    assert.ok(kept.length >= 8 && kept.length <= 9, String(kept.length))
    assert.deepEqual(kept, ids.slice(-kept.length))
    // 25 and 40 of the tests before.
    assert.equal(await dropped(), 25 + 40 + 40 - kept.length)
    const told = service().logs.filter(({ msg }) => msg.startsWith('The dead-letter store is full'))
    assert.equal(told.length, 1)
  })

  it('with very many keys are on pages of a size', async () => {
    await fail('large.keys', 12, { keys: 50_000 })
    let count = 0
    for (let path: string | null = '/system/dead-letters'; path !== null; ) {
      const { letters, bytes, next }: Page = await pageAt(path)
      assert.ok(bytes <= PAGE_BYTES + 1000, String(bytes))
      count += letters.filter(({ event }) => event === 'large.keys').length
      path = next
    }
    assert.ok(count >= 5, String(count))
  })

  it('are 1000 at most, the newest', async () => {
    const ids = await fail('large.payload', 1003, {})
    const { letters, next } = await pageAt()
    const kept = letters.map(({ event_id }) => event_id)
    assert.deepEqual([kept, next], [ids.slice(3), null])
  })
})
