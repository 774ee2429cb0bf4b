import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseArguments } from '../../chaos/arguments.ts'
import { type Trouble, troublesOf } from '../../chaos/faults.ts'
import { formatReport, isPassed, type Report } from '../../chaos/report.ts'
import { FAULTS, type FaultName } from '../../chaos/verdict.ts'
import { seededRandom } from '../../support/random.ts'

const REPORT: Report = {
  options: parseArguments(['--seed', '42']),
  node: 'v22.0.0',
  drainSeconds: 1.25,
  keptLog: null,
  struck: [{ kind: 'exit', outcome: 503 }],
  lanesDied: 1,
  gaveUp: 0,
  outcomes: { 201: 995, 500: 5 },
  longestGapMs: 1019.4,
  healed: { edited: 1, deleted: 2 },
  faultsOfProcess: [],
  verdict: {
    faults: Object.fromEntries(FAULTS.map((name) => [name, []])) as unknown as Record<FaultName, string[]>,
    acknowledged: 995,
    rows: 700,
    events: 2000,
    trees: 995,
    repeats: 3,
    setAside: 1,
  },
}

test('a finding, or a process that did not end well, fails the run and names the seed', () => {
  assert.equal(isPassed(REPORT), true)
  assert.match(formatReport(REPORT), /Nothing was lost\.$/)
  for (const name of FAULTS) {
    const faults = { ...REPORT.verdict.faults, [name]: ['e1'] }
    const lost = { ...REPORT, verdict: { ...REPORT.verdict, faults } }
    assert.equal(isPassed(lost), false, name)
    assert.ok(formatReport(lost).endsWith(`! ${name}: e1\nFailed: repeat it with --seed 42`), name)
  }
  const ended = { ...REPORT, faultsOfProcess: ['the process ended by itself'] }
  assert.equal(isPassed(ended), false)
  assert.match(formatReport(ended), /^! the process ended by itself$/m)
})

test('what is given is taken, and two minutes, two lanes and a new seed are the default', () => {
  const { seed, ...rest } = parseArguments([])
  const byDefault = { killProcess: false, kills: 1000, log: 'sqlite', seconds: 120, lanes: 2, gap: 3.5, json: null }
  assert.deepEqual(rest, byDefault)
  assert.equal(parseArguments(['--kill-process']).seconds, 60)
  assert.ok(Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32)
  const wanted = { killProcess: true, kills: 4, log: 'postgres', seconds: 10.5, seed: 42, lanes: 3, gap: 2, json: 'a' }
  const given = Object.entries(wanted)
    .slice(1)
    .flatMap(([name, value]) => [`--${name}`, String(value)])
  assert.deepEqual(parseArguments(['--kill-process', ...given]), wanted)
})

test('what is out of range or unknown is refused', () => {
  const refused = ['--seconds 0', '--seconds ', '--seed abc', '--seed -1', '--seed 1.5', '--lanes 0', '--gap NaN']
  for (const given of [...refused, '--kills 0', '--log mysql', '--fast'])
    assert.throws(() => parseArguments(given.split(' ')), given)
})

test('the troubles follow from the seed alone, and each kind comes equally often', () => {
  const first = (seed: number) => {
    const troubles = troublesOf(seededRandom(seed), 3500)
    return Array.from({ length: 22 }, () => troubles.next().value as Trouble)
  }
  assert.deepEqual(first(5), first(5))
  assert.notDeepEqual(first(6), first(5))
  const kinds = first(7).map(({ kind }) => kind)
  for (const kind of kinds) assert.equal(kinds.filter((each) => each === kind).length, 2, kind)
})
