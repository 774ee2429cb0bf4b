import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseArguments } from '../../chaos/arguments.ts'

test('two minutes, two lanes and a new seed are the default', () => {
  const { seed, ...rest } = parseArguments([])
  assert.deepEqual(rest, {
    killProcess: false,
    kills: 1000,
    database: 'sqlite',
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
    database: 'postgres',
    seconds: 10.5,
    seed: 42,
    lanes: 3,
    gap: 2,
    json: 'report.json',
  }
  assert.deepEqual(parseArguments(['--kill-process', '--kills', '4', '--database', 'postgres', ...given]), wanted)
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
    ['--database', 'mysql'],
    ['--fast'],
  ])
    assert.throws(() => parseArguments(given), given.join(' '))
})
