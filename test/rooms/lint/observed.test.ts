import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Observed } from '../../../src/devtools/lint/report.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { fixture, lintArchitecture, plugin } from '../../support/lint-fixture.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const FIXTURES = fileURLToPath(new URL('../../fixtures/lint/domains', import.meta.url))

const SINCE = '2026-01-01T00:00:00.000Z'

const Z = "import { z } from 'zod'\n"

test('what a process has seen is held against contracts and publishing code', async (t) => {
  const { domains, tools } = await fixture(t, {
    'a/events.ts': `${Z}export default {\n  'a.contracted': z.object({}),\n  'a.both': z.object({}),\n  'a.seen': z.object({}),\n}\n`,
    'a/plugins/a.ts': plugin('A', "await this.#bus.publish('a.both', {})\nthis.#bus.subscribe('a.heard', this.x)"),
  })
  const fired = (fire_count: number) => ({ emitters: ['a.A'], subscribers: ['b.B'], fire_count })
  const { observed, ok } = await lintArchitecture([domains], tools, {
    since: SINCE,
    topology: {
      'a.seen': fired(2),
      'a.heard': fired(3),
      'a.silent': fired(0),
      'a.both': fired(0),
      'runtime.lane.died': fired(1),
    },
    uncalledTools: { 'a.A': ['logger', 'db'] },
  })
  assert.equal(ok, true, 'observations are no findings')
  assert.equal(observed?.since, SINCE)
  assert.deepEqual(observed?.undeclared_events, [{ event: 'a.heard', ...fired(3) }])
  assert.deepEqual(
    observed?.unseen_events.map(({ contract, ...rest }) => ({ ...rest, line: contract?.split(':').at(-1) })),
    [
      { event: 'a.both', emitters: ['a.A'], line: '4' },
      { event: 'a.contracted', emitters: [], line: '3' },
    ],
  )
  assert.deepEqual(observed?.unused_tools, [{ plugin: 'a.A', tools: ['db', 'logger'] }])
  assert.equal((await lintArchitecture([domains], tools)).observed, undefined)
})

test('a running process tells which events and tools its sources and its lanes have not used yet', async (t) => {
  const { json } = await startHeddle(t, { domains: [SHIPPED, FIXTURES], lanes: 2 })
  const observed = async (): Promise<Observed> => (await json('/system/lint')).body.observed
  const unusedOfAsk = ({ unused_tools }: Observed) => unused_tools.find(({ plugin }) => plugin === 'curious.Ask')?.tools

  const before = await observed()
  assert.ok(Date.parse(before.since) <= Date.now())
  assert.deepEqual(unusedOfAsk(before), ['auth', 'event_bus', 'logger', 'state'])
  assert.ok(before.unseen_events.some(({ event }) => event === 'curious.asked'))
  assert.deepEqual(before.undeclared_events, [])

  assert.equal((await json('/ask/asked')).status, 200)
  assert.equal((await json('/ask/else')).status, 200)
  assert.equal((await json('/mine', { headers: { authorization: 'Bearer x' } })).status, 401)
  await until(async () => (await observed()).undeclared_events.length > 0, 'the event is counted')
  const after = await observed()
  assert.deepEqual(unusedOfAsk(after), ['logger'])
  assert.ok(!after.unseen_events.some(({ event }) => event === 'curious.asked'))
  assert.deepEqual(after.undeclared_events, [
    { event: 'curious.else', emitters: ['curious.Ask'], subscribers: [], fire_count: 1 },
  ])
})

const COUNTS_PROCESSES = fileURLToPath(new URL('count-processes.cjs', import.meta.url))

const DEEP = `export const deep = ${'['.repeat(20_000)}${']'.repeat(20_000)}\n`

test('sources are parsed in a process of their own, once per change, and a file that ends it is named', async (t) => {
  const folder = temporaryFolder(t)
  const domain = join(folder, 'domains', 'deep')
  mkdirSync(join(domain, 'plugins'), { recursive: true })
  const write = (text: string) => writeFileSync(join(domain, 'data.ts'), text)
  const log = join(folder, 'processes')
  writeFileSync(log, '')
  const heddle = await startHeddle(t, {
    domains: [join(folder, 'domains'), SHIPPED],
    lanes: 1,
    env: { NODE_OPTIONS: `--require ${COUNTS_PROCESSES}`, PROCESS_LOG: log },
  })
  /** Processes that have parsed. */
  const parsers = () =>
    readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => line.includes('source-process')).length
  const faults = async () =>
    ((await heddle.json('/system/lint')).body.findings as { rule: string; file: string; message: string }[]).filter(
      ({ rule }) => rule === 'parse',
    )

  assert.deepEqual(await faults(), [])
  assert.equal(parsers(), 1)
  const { topology } = (await heddle.json('/system/events')).body
  assert.ok('user.created' in topology, 'events of the sources are found')
  assert.equal(parsers(), 1, 'the result is kept')

  write(DEEP)
  const [fault, ...others] = await faults()
  assert.deepEqual(others, [])
  assert.match(fault!.file, /deep\/data\.ts$/)
  assert.match(fault!.message, /the parser ran in a process of its own, and it ended with SIG/)
  assert.equal(parsers(), 3, 'the other files are read without it')
  assert.ok('user.created' in (await heddle.json('/system/events')).body.topology)
  await faults()
  assert.equal(parsers(), 3, 'the failure is kept')
  assert.equal(heddle.process.exitCode, null)

  write('export const deep = []\n')
  assert.deepEqual(await faults(), [])
  assert.equal(parsers(), 4)
})
