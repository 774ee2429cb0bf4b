import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { fixtureDomains, SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { allUp, deathsIn, lanesOf } from './deadly.ts'

const DOMAINS = [fixtureDomains('lanes'), SYSTEM_ROUTES]
const STREAMS = 8

/** A reader of ticks: counts them, and knows whether the stream ended in order or was cut off, as one that would have gone on is. */
class TickReader {
  readonly threads = new Set<number>()
  end: 'in order' | 'cut off' | undefined

  static async open(t: TestContext, heddle: Heddle): Promise<TickReader> {
    const leave = new AbortController()
    t.after(() => leave.abort())
    const response = await heddle.fetch('/ticks', { signal: leave.signal })
    assert.equal(response.status, 200)
    const reader = new TickReader()
    void reader.#read(response).then(
      () => {
        reader.end = 'in order'
      },
      () => {
        reader.end = 'cut off'
      },
    )
    await until(() => reader.threads.size > 0, 'the first tick')
    return reader
  }

  async #read(response: Response): Promise<void> {
    let rest = ''
    for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
      const frames = (rest + text).split('\n\n')
      rest = frames.pop()!
      for (const frame of frames)
        if (frame.startsWith('data: ')) this.threads.add(JSON.parse(frame.slice('data: '.length)).thread)
    }
    assert.equal(rest, '', 'half of a frame')
  }
}

const open = (t: TestContext, heddle: Heddle) =>
  Promise.all(Array.from({ length: STREAMS }, () => TickReader.open(t, heddle)))
/** A lane that is late for a moment gets no stream: on a busy machine that happens. */
async function openInBoth(t: TestContext, heddle: Heddle): Promise<TickReader[]> {
  const readers = await open(t, heddle)
  for (let more = 0; more < 5 && threadsOf(readers).length < 2; more++) readers.push(...(await open(t, heddle)))
  assert.equal(threadsOf(readers).length, 2, 'streams in both lanes')
  return readers
}
const threadsOf = (readers: TickReader[]): number[] => [...new Set(readers.flatMap(({ threads }) => [...threads]))]

test('a reload breaks the streams of the old lanes off behind a whole frame, waits for none, and clients that come back get the new code', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS })
  const readers = await openInBoth(t, heddle)
  const before = threadsOf(readers)
  heddle.process.kill('SIGHUP')
  await until(() => heddle.logs.some(({ msg }) => msg.startsWith('Reloaded in ')), 'the reload', 30_000)
  await until(() => readers.every(({ end }) => end !== undefined), 'the end of all streams')
  assert.deepEqual(
    readers.map(({ end }) => end),
    readers.map(() => 'cut off'),
  )
  assert.equal(
    heddle.logs.filter(({ msg }) => msg === 'stream gone').length,
    readers.length,
    'their handlers were told',
  )
  assert.deepEqual(deathsIn(heddle), [])

  const again = await open(t, heddle)
  assert.deepEqual(
    threadsOf(again).filter((thread) => before.includes(thread)),
    [],
  )
  assert.equal(
    (await lanesOf(heddle)).reduce((sum, lane) => sum + lane.requests_in_flight, 0),
    STREAMS,
  )
  const stopped = heddle.stop()
  await until(() => again.every(({ end }) => end !== undefined), 'the end of all streams')
  assert.equal(await stopped, 0)
  assert.ok(again.every(({ end }) => end === 'cut off'))
})

test('the streams of a lane that dies end, and the others go on', async (t) => {
  const heddle = await startHeddle(t, { domains: DOMAINS })
  const readers = await openInBoth(t, heddle)
  await heddle.fetch('/die/exit')
  const [dead] = await until(() => {
    const threads = threadsOf(readers.filter(({ end }) => end !== undefined))
    return threads.length > 0 ? threads : undefined
  }, 'the end of one of them')
  const [gone, others] = [true, false].map((isGone) => readers.filter(({ threads }) => threads.has(dead!) === isGone))
  await until(() => gone!.every(({ end }) => end !== undefined), 'the end of all of that lane')
  await allUp(heddle)
  // About half of them: a lane that is late for a moment gets fewer.
  assert.ok(others!.length > 0)
  assert.ok(others!.every(({ end }) => end === undefined))
  await open(t, heddle)
  assert.equal(await heddle.stop(), 0)
})
