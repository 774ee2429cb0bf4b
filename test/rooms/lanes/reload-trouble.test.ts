import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { LaneInfo } from '../../../src/contracts/registry.ts'
import { RESTART_INTENSITY } from '../../../src/primary/supervision/lane-set.ts'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, type LogLine, startHeddle } from '../../support/heddle.ts'
import { RawConnection, requestText } from '../../support/raw-client.ts'
import { shareService } from '../../support/shared-service.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { allUp, deathsIn, lanesOf } from './deadly.ts'

const PATIENCE_MS = 30_000

/** Ends its lane. There are several of it: one alone would be disabled. */
const fall = (name: string): string => `
export default class Fall${name} {
  constructor({ http }) { http.addEndpoint('/fall/${name}', 'GET', () => process.exit(3)) }
}
`
/** What waits for a gate waits until the primary, which is always there, has opened it. */
const gate = `
export default class Gate {
  static thread = 'primary'
  constructor({ http, state }) {
    http.addEndpoint('/open/:gate', 'GET', async ({ gate }) => { await state.set(gate, true); return {} })
  }
}
`
const tell = (version: string): string => `
export default class Tell {
  constructor({ http, event_bus, logger, state }) {
    const opened = async (gate) => {
      while (!(await state.get(gate))) await new Promise((resolve) => setTimeout(resolve, 5))
    }
    http.addEndpoint('/version', 'GET', () => ({ version: '${version}' }))
    http.addEndpoint('/wait', 'GET', async () => {
      logger.info('waits')
      await opened('request')
      return { version: '${version}' }
    })
    http.addStream('/deaf', async (_, stream) => {
      stream.send({ version: '${version}' })
      await new Promise(() => {})
    })
    http.addEndpoint('/publish', 'POST', async () => ({ id: await event_bus.publish('told', {}) }))
    event_bus.subscribe('told', async function onTold(_, { id }) {
      logger.info('event begins', { event: id })
      await opened('event')
      logger.info('event ends', { event: id })
    })
  }
}
`
type Owner = Parameters<typeof startHeddle>[0]

/** As many as fall in one test: each falls once, and has a lane of its own from then on. */
const FALLS = ['One', 'Two', 'Three', 'Four', 'Five', 'Six', 'Seven', 'Eight']

async function started(t: Owner, lanes = 2) {
  const falls = Object.fromEntries(FALLS.map((name) => [`tell/plugins/fall-${name}.ts`, fall(name)]))
  const folder = await folderOf(t, { 'tell/plugins/tell.ts': tell('one'), 'tell/plugins/gate.ts': gate, ...falls })
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder], lanes })
  const said = (text: string): LogLine[] => heddle.logs.filter(({ msg }) => msg.startsWith(text))
  return {
    heddle,
    said,
    rewrite: (version: string) => writeFile(join(folder, 'tell/plugins/tell.ts'), tell(version)),
    /** Sends a SIGHUP that has been seen when this resolves. */
    hangUp: async () => {
      const before = said('SIGHUP: reloading').length
      heddle.process.kill('SIGHUP')
      await until(() => said('SIGHUP: reloading').length > before, 'the signal')
    },
    /** Waits until as many reloads have ended as were asked for. */
    reloaded: () =>
      until(
        () => said('Reloaded in ').length + said('Not reloaded').length >= said('SIGHUP: reloading').length,
        'the reload',
        PATIENCE_MS,
      ),
    /** Brings down one lane. */
    fell: async (n: number) => {
      const before = deathsIn(heddle).length
      await heddle.fetch(`/fall/${FALLS[n % FALLS.length]}`)
      await until(() => deathsIn(heddle).length > before, 'the death')
    },
  }
}

/** Brings down so many lanes that the next one has to wait for its restart. */
async function fellOften({ heddle, fell }: Parts): Promise<void> {
  for (let n = 0; n < RESTART_INTENSITY + 2; n++) {
    await fell(n)
    await allUp(heddle)
  }
}

type Parts = Awaited<ReturnType<typeof started>>

/** Without the lane that plugins have which fell. */
const regularOf = async (heddle: Heddle): Promise<LaneInfo[]> =>
  (await lanesOf(heddle)).filter(({ role }) => role === 'regular')
const stateOf = async (heddle: Heddle): Promise<string[]> => (await regularOf(heddle)).map(({ state }) => state)

test('a reload while a lane waits for its restart does not wait with it', async (t) => {
  const parts = await started(t)
  const { heddle, fell, rewrite, hangUp, reloaded, said } = parts
  await fellOften(parts)
  await fell(RESTART_INTENSITY + 2)
  const before = await regularOf(heddle)
  assert.deepEqual(before.map(({ state }) => state).sort(), ['dead', 'ready'])
  await rewrite('two')
  await hangUp()
  await reloaded()
  assert.equal(said('Not reloaded').length, 0)
  const after = await regularOf(heddle)
  assert.deepEqual(
    after.map(({ state }) => state),
    ['ready', 'ready'],
  )
  for (let n = 0; n < 6; n++) assert.equal((await heddle.json('/version')).body.version, 'two')
  // When its time has come nothing is left to start.
  const [line] = said(`${RESTART_INTENSITY + 3} lanes died within`)
  const dueMs = Number(line!.time) + Number(/waits (\d+) ms$/.exec(line!.msg)![1])
  await until(() => Date.now() > dueMs + 500, 'the time of its restart')
  const restarts = (lanes: LaneInfo[]) => lanes.map(({ started_at, restarts }) => [started_at, restarts])
  assert.deepEqual(restarts(await regularOf(heddle)), restarts(after))
  assert.equal(await heddle.stop(), 0)
})

test('an accepted event outlives a lane that dies as soon as it has taken over, and the end of the reload', async (t) => {
  const parts = await started(t, 1)
  const { heddle, fell, hangUp, reloaded, said } = parts
  await fellOften(parts)
  const waiting = heddle.json('/wait')
  await until(() => said('waits').length === 1, 'a request that holds up the old lane')
  const [old] = await lanesOf(heddle)
  await hangUp()
  await until(async () => {
    const [lane] = await lanesOf(heddle)
    return lane!.started_at !== old!.started_at && lane!.state === 'ready'
  }, 'the lane that took over')
  const { body } = await heddle.json('/publish', { method: 'POST' })
  const of = (text: string) => said(text).filter(({ event }) => event === body.id)
  await until(() => of('event begins').length === 1, 'the event at work')
  await fell(RESTART_INTENSITY + 2)
  await heddle.fetch('/open/request')
  assert.deepEqual((await waiting).body, { version: 'one' }, 'the old lane finished what it had')
  await reloaded()
  await heddle.fetch('/open/event')
  await until(() => of('event ends').length === 1, 'the event', PATIENCE_MS)
  assert.deepEqual((await heddle.json('/system/dead-letters')).body, [])
  await allUp(heddle)
  assert.equal(await heddle.stop(), 0)
})

/** One service for all tests of a `describe`; the last of them ends it. */
function share(lanes: number): () => Parts {
  let parts: Parts
  shareService(async (owner) => {
    parts = await started(owner, lanes)
    return parts.heddle
  })
  return () => parts
}

describe('reloads of two lanes', () => {
  const parts = share(2)

  test('reloads that come while one is under way run one after another', async () => {
    const { heddle, rewrite, hangUp, reloaded, said } = parts()
    await rewrite('two')
    await hangUp()
    await rewrite('three')
    await hangUp()
    heddle.process.kill('SIGHUP')
    heddle.process.kill('SIGHUP')
    // Two signals at once may arrive as one.
    await until(() => said('SIGHUP: reloading').length >= 3, 'the signals')
    await reloaded()
    assert.equal(said('Not reloaded').length, 0)
    for (let n = 0; n < 6; n++) assert.equal((await heddle.json('/version')).body.version, 'three')
    assert.deepEqual(await stateOf(heddle), ['ready', 'ready'])
    assert.deepEqual(deathsIn(heddle), [])
  })

  test('a reload takes over from a lane that is starting', async () => {
    const { heddle, fell, rewrite, hangUp, reloaded, said } = parts()
    await reloaded()
    let deaths = 0
    // On a busy machine a start may be over before it is looked at.
    await until(async () => {
      await fell(deaths++)
      return (await stateOf(heddle)).includes('starting')
    }, 'a lane that starts')
    await rewrite('four')
    await hangUp()
    await reloaded()
    assert.equal(said('Not reloaded').length, 0)
    assert.deepEqual(await stateOf(heddle), ['ready', 'ready'])
    for (let n = 0; n < 6; n++) assert.equal((await heddle.json('/version')).body.version, 'four')
    assert.equal(deathsIn(heddle).length, deaths, 'no lane died of being replaced')
  })

  test('SIGTERM in the midst of a reload ends in order, while the new lane starts', async () => {
    const { heddle, hangUp, said } = parts()
    const died = deathsIn(heddle).length
    await hangUp()
    assert.equal(await heddle.stop(), 0)
    assert.equal(said('The drain did not end').length, 0)
    assert.equal(deathsIn(heddle).length, died)
  })
})

describe('reloads of one lane', () => {
  const parts = share(1)

  test('a stream whose handler is deaf to its end does not hold up a reload', async () => {
    const { heddle, hangUp, reloaded, said } = parts()
    const stream = await heddle.fetch('/deaf')
    let text = ''
    const isCut = (async () => {
      for await (const piece of stream.body!.pipeThrough(new TextDecoderStream())) text += piece
    })().then(
      () => false,
      () => true,
    )
    await hangUp()
    await reloaded()
    assert.equal(said('Reloaded in ').length, 1)
    assert.ok(await isCut, 'its client sees that it would have gone on')
    assert.equal(text.match(/"version":"one"/g)?.length, 1)
  })

  test('SIGTERM in the midst of a reload ends in order, while an old lane finishes what it has', async (t) => {
    const { heddle, hangUp, said } = parts()
    // Opened before: a process that drains takes no new ones.
    const connection = await RawConnection.open(heddle.port)
    t.after(() => connection.drop())
    const waiting = heddle.json('/wait')
    await until(() => said('waits').length === 1, 'the request')
    const [old] = await lanesOf(heddle)
    await hangUp()
    await until(async () => (await lanesOf(heddle))[0]!.started_at !== old!.started_at, 'the new lane')
    const stopped = heddle.stop()
    await until(() => said('SIGTERM: draining').length === 1, 'the drain')
    await connection.send(requestText('GET', '/open/request'))
    assert.equal((await waiting).status, 200)
    assert.equal(await stopped, 0)
    assert.deepEqual(deathsIn(heddle), [])
  })
})
