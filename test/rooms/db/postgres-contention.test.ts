import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { rowsOfServer } from '../../support/rows.ts'
import { type PostgresServer, postgresServer } from '../../support/servers/postgres.ts'
import { fixtureDomains, SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { toolsDirWith } from '../../support/tools-dir.ts'
import { until } from '../../support/until.ts'

const CALLERS = 80
/** Most that the slowest of a hundred may take, beside the same statements by hand. */
const MOST_RATIO = 2

interface Studio {
  server: PostgresServer
  start(lanes?: number, env?: Record<string, string>): Promise<Heddle>
  rows: ReturnType<typeof rowsOfServer>
}

async function studio(t: TestContext): Promise<Studio | null> {
  const server = await postgresServer(t)
  if (server === null) return null
  const tools = await toolsDirWith(t, 'postgres')
  const env = {
    ...server.env,
    RDB_DATABASE: server.database,
    TOOLS_DIR: tools,
    LANE_ENV: Object.keys(server.env).join(),
  }
  return {
    server,
    start: (lanes = 1, own = {}) =>
      startHeddle(t, { domains: [fixtureDomains('contended'), SYSTEM_ROUTES], lanes, env: { ...env, ...own } }),
    rows: rowsOfServer(t, server),
  }
}

const addClass = ({ rows }: Studio, id: string, capacity = 100_000) =>
  rows(`INSERT INTO classes (id, booked, capacity) VALUES ('${id}', 0, ${capacity})`)

/** @returns the statuses, and the milliseconds of each */
async function callers(services: readonly Heddle[], way: string, classId: string, search = '') {
  const times: number[] = []
  const statuses = await Promise.all(
    Array.from({ length: CALLERS }, async (_, n) => {
      const startedMs = performance.now()
      const { status } = await services[n % services.length]!.post(`/${way}/${classId}/${classId}-${n}${search}`, {})
      times.push(performance.now() - startedMs)
      return status
    }),
  )
  return { statuses, p99Ms: times.sort((a, b) => a - b)[Math.ceil(CALLERS * 0.99) - 1]! }
}

const LEVELS = ['', '?isolation=repeatable%20read', '?isolation=read%20committed']

for (const [what, lanes, processes] of [
  ['one lane', 1, 1],
  ['two lanes', 2, 1],
  ['two processes', 1, 2],
] as const)
  test(`${CALLERS} callers want one row, ${what}: all of them get it, under each isolation`, async (t) => {
    const place = await studio(t)
    if (place === null) return
    const services = [await place.start(lanes)]
    for (let n = 1; n < processes; n++) services.push(await place.start(lanes))
    let ids = 0
    for (const search of LEVELS)
      for (const way of ['transaction', 'commit', 'helper']) {
        const id = `class${++ids}`
        await addClass(place, id)
        const { statuses } = await callers(services, way, id, search)
        assert.deepEqual([...new Set(statuses)], [200], `${way}${search}: ${statuses}`)
        assert.deepEqual(await place.rows(`SELECT booked FROM classes WHERE id = '${id}'`), [{ booked: CALLERS }])
      }
    // The machine may give a round to somebody else: the best of some counts.
    const ratios: string[] = []
    for (const search of ['', LEVELS.at(-1)!]) {
      let best = Number.POSITIVE_INFINITY
      for (let round = 0; round < 6 && best > MOST_RATIO; round++) {
        const [own, hand] = [`own${++ids}`, `hand${ids}`]
        await addClass(place, own)
        await addClass(place, hand)
        const byHand = await callers(services, 'hand', hand)
        const { p99Ms } = await callers(services, 'transaction', own, search)
        ratios.push(`${search} ${Math.round(p99Ms)} ms / ${Math.round(byHand.p99Ms)} ms`)
        best = Math.min(best, p99Ms / byHand.p99Ms)
      }
      assert.ok(best <= MOST_RATIO, ratios.join('; '))
    }
    t.diagnostic(ratios.join('; '))
    const metrics = await (await services[0]!.fetch('/system/metrics/prometheus')).text()
    assert.match(metrics, /heddle_tool_refusals_total\{[^}]*method="repeat"[^}]*\} [1-9]/)
  })

test('a row that somebody else has for long stops no transaction of another route', async (t) => {
  const place = await studio(t)
  if (place === null) return
  const heddle = await place.start()
  await addClass(place, 'held')
  await addClass(place, 'free')
  const holder = rowsOfServer(t, place.server)
  await holder('BEGIN')
  await holder("UPDATE classes SET booked = booked WHERE id = 'held'")
  const held = callers([heddle], 'transaction', 'held', LEVELS.at(-1))
  const waiting = async (): Promise<number> => {
    const [row] = await place.rows<{ n: string }>(
      "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    )
    return Number(row!.n)
  }
  let before = -1
  const areAll = async (): Promise<boolean> => {
    const last = before
    before = await waiting()
    return before > 1 && before === last
  }
  await until(areAll, 'as many that wait for the row as may')
  const startedMs = performance.now()
  const { status } = await heddle.post('/commit/free/one', {})
  const isHeld = (await waiting()) > 0
  await holder('COMMIT')
  assert.deepEqual({ status, isHeld }, { status: 200, isHeld: true }, `${performance.now() - startedMs} ms`)
  assert.ok((await held).statuses.every((each) => each === 200 || each === 503))
})

test('a class that is full refuses what is too much, and takes no more', async (t) => {
  const place = await studio(t)
  if (place === null) return
  const heddle = await place.start(2)
  for (const search of LEVELS.slice(0, 2)) {
    const id = `full${search.length}`
    await addClass(place, id, 25)
    const { statuses } = await callers([heddle], 'transaction', id, search)
    assert.equal(statuses.filter((status) => status === 200).length, 25)
    assert.equal(statuses.filter((status) => status === 409).length, CALLERS - 25)
  }
})

test('a conflict that does not end is 503 with Retry-After, however it reaches the client', async (t) => {
  const place = await studio(t)
  if (place === null) return
  const heddle = await place.start()
  await Promise.all(
    ['statement', 'wrapped', 'transaction', 'commit', 'deadlock'].map(async (how) => {
      const { status, headers, body } = await heddle.post(`/collide/${how}`, {})
      assert.deepEqual([status, headers.get('retry-after')], [503, '1'], `${how}: ${JSON.stringify(body)}`)
    }),
  )
})

test('a transactional subscriber that loses a conflict loses no attempt', async (t) => {
  const place = await studio(t)
  if (place === null) return
  const heddle = await place.start(2)
  await addClass(place, 'wanted')
  await heddle.post('/publish/lost/none/late', {})
  await Promise.all(Array.from({ length: CALLERS }, (_, n) => heddle.post(`/publish/wanted/wanted/event-${n}`, {})))
  const booked = async () =>
    (await place.rows<{ booked: number }>("SELECT booked FROM classes WHERE id = 'wanted'"))[0]!.booked
  await until(async () => (await booked()) === CALLERS, 'all are booked')
  await until(
    () => heddle.logs.some(({ msg }) => msg.includes('does not take it at the moment')),
    'the refusal',
    40_000,
  )
  await addClass(place, 'over')
  const late = await until(
    async () => (await place.rows<{ class_id: string }>("SELECT class_id FROM bookings WHERE id = 'late'"))[0],
    'the late one',
    40_000,
  )
  assert.equal(late.class_id, '1', 'its attempt')
  assert.deepEqual(await place.rows('SELECT id FROM heddle_dead'), [])
})

test('keys: of requests with one key each has one effect, and none is 500', async (t) => {
  const place = await studio(t)
  if (place === null) return
  const services = [await place.start(2), await place.start(1)]
  await addClass(place, 'keyed')
  const keys = 20
  const statuses = await Promise.all(
    Array.from({ length: CALLERS }, async (_, n) => {
      const way = n % 2 === 0 ? 'transaction' : 'commit'
      const key = { 'idempotency-key': `key-${Math.floor(n / 2) % keys}-${way}` }
      const path = `/${way}/keyed/${way}-${Math.floor(n / 2) % keys}`
      for (;;) {
        const { status } = await services[n % 3 === 0 ? 1 : 0]!.post(path, {}, key)
        if (status !== 409) return status
        await new Promise((done) => setTimeout(done, 50))
      }
    }),
  )
  assert.deepEqual([...new Set(statuses)], [200], String(statuses))
  const [row] = await place.rows<{ booked: number }>("SELECT booked FROM classes WHERE id = 'keyed'")
  assert.equal(row?.booked, 2 * keys)
})
