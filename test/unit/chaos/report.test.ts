import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseArguments } from '../../chaos/arguments.ts'
import { formatReport, isPassed, type Report } from '../../chaos/report.ts'
import { type Fault, faultsOf, LETHAL, TROUBLE } from '../../chaos/schedule.ts'
import { seededRandom } from '../../support/random.ts'

const REPORT: Report = {
  options: { seconds: 10, seed: 42, lanes: 2, gap: 9, killProcess: false, log: 'sqlite', kills: 1000, json: null },
  node: 'v22.0.0',
  drainSeconds: 1.25,
  startedAt: '2026-01-01T00:00:00.000Z',
  faults: [
    { kind: 'exit', atMs: 2000, delayMs: 5, outcome: 500 },
    { kind: 'pause', atMs: 4000, delayMs: 0, outcome: 200 },
    { kind: 'exit', atMs: 6000, delayMs: 9, outcome: 503 },
  ],
  deaths: [
    { atMs: 2010, cause: 'exit', message: 'Lane 0 died: code: 41', inFlight: [] },
    { atMs: 5000, cause: 'other', message: 'Lane 1 died: who knows', inFlight: ['POST /users', 'POST /users'] },
  ],
  requests: { 200: 995, 500: 5 },
  users: { acknowledged: 10, lost: 0, unacknowledged: 1, thereAllTheSame: 1 },
  events: {
    acknowledged: 985,
    accepted: 1980,
    handled: 1975,
    handledMoreThanOnce: 3,
    deadLetters: 5,
    innocentDeadLetters: 0,
    lost: 0,
  },
  trees: { whole: 995, broken: 0 },
  longestGapMs: 1019.4,
  p99Ms: { user: 500, count: null },
  peakMemoryMib: 300,
  faultsOfProcess: [],
  findings: [],
}

test('a finding, or a process that did not end well, fails the run and names the seed', () => {
  assert.equal(isPassed(REPORT), true)
  assert.match(formatReport(REPORT), /Nothing was lost\.$/)
  const findings = Array.from({ length: 25 }, (_, n) => ({ what: 'event' as const, id: `e${n}`, problem: 'is gone' }))
  const lost = { ...REPORT, findings }
  assert.equal(isPassed(lost), false)
  assert.match(formatReport(lost), /^! event e19: is gone\n! and 5 more\nFailed: repeat it with --seed 42$/m)
  const ended = { ...REPORT, faultsOfProcess: ['the process ended by itself (code 1)'] }
  assert.equal(isPassed(ended), false)
  assert.match(formatReport(ended), /^! the process ended by itself \(code 1\)$/m)
})

test('two minutes, two lanes and a new seed are the default', () => {
  const { seed, ...rest } = parseArguments([])
  assert.deepEqual(rest, {
    killProcess: false,
    kills: 1000,
    log: 'sqlite',
    seconds: 120,
    lanes: 2,
    gap: 8,
    json: null,
  })
  assert.equal(parseArguments(['--kill-process']).seconds, 60)
  assert.ok(Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32)
})

test('what is given is taken', () => {
  const given = ['--seconds', '10.5', '--seed', '42', '--lanes', '3', '--gap', '2', '--json', 'report.json']
  const wanted = {
    killProcess: true,
    kills: 4,
    log: 'postgres',
    seconds: 10.5,
    seed: 42,
    lanes: 3,
    gap: 2,
    json: 'report.json',
  }
  assert.deepEqual(parseArguments(['--kill-process', '--kills', '4', '--log', 'postgres', ...given]), wanted)
})

test('what is out of range or unknown is refused', () => {
  for (const given of [
    ['--seconds', '0'],
    ['--seconds', ''],
    ['--seed', 'abc'],
    ['--seed', '-1'],
    ['--seed', '1.5'],
    ['--lanes', '0'],
    ['--gap', 'NaN'],
    ['--kills', '0'],
    ['--log', 'mysql'],
    ['--fast'],
  ])
    assert.throws(() => parseArguments(given), given.join(' '))
})

const countOf = (faults: Fault[], kind: string) => faults.filter((fault) => fault.kind === kind).length

test('the faults follow from the seed alone', () => {
  const faults = faultsOf(seededRandom(5), 120_000, 8000)
  assert.deepEqual(faultsOf(seededRandom(5), 120_000, 8000), faults)
  assert.notDeepEqual(faultsOf(seededRandom(6), 120_000, 8000), faults)
})

test('two minutes hold every kind, poison once', () => {
  for (let seed = 0; seed < 50; seed++) {
    const faults = faultsOf(seededRandom(seed), 120_000, 8000)
    for (const kind of LETHAL) assert.equal(countOf(faults, kind), 2, kind)
    for (const kind of TROUBLE) assert.ok(countOf(faults, kind) >= 6, kind)
    assert.equal(countOf(faults, 'poison'), 1)
  }
})
