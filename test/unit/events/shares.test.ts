/** Whose an event is, and how urgent. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isUrgent, priorityOf, shareIn, sharesFor, valueIn } from '../../../src/runtime/events/shares.ts'

const tenant = ({ tenant: of }: { tenant?: unknown }) => of as string
const region = ({ region: of }: { region?: unknown }) => of as string
const asking = [
  { group: 'shop.Mail.send', functions: [tenant, region] },
  { group: 'shop.Count.add', functions: [region] },
]
const noFault = (group: string, fault: string): void => assert.fail(`${group}: ${fault}`)

test('each group that asks gets its share, and the others the priority alone', () => {
  assert.equal(sharesFor([], '1', '{}', noFault), '')
  const shares = sharesFor(asking, '1', '{"tenant":"a","region":7}', noFault)
  assert.equal(shareIn(shares, 'shop.Mail.send'), '1["a",7]')
  assert.equal(shareIn(shares, 'shop.Count.add'), '1[7]')
  assert.equal(shareIn(shares, 'shop.Else.none'), '')
  assert.equal(isUrgent(shares), false)
  const urgent = sharesFor(asking, '0', '{"tenant":null}', noFault)
  assert.equal(shareIn(urgent, 'shop.Mail.send'), '0[null,null]')
  assert.equal(shareIn(urgent, 'shop.Else.none'), '0?')
  assert.equal(isUrgent(urgent), true)
  assert.equal(isUrgent(sharesFor([], '2', '{}', noFault)), true)
  assert.deepEqual(['', '0?', '1["a"]', '2?'].map(priorityOf), [1, 0, 1, 2])
})

test('values are told apart by their types, and read back', () => {
  assert.equal(valueIn('1["a",7]', 0), '"a"')
  assert.equal(valueIn('1["a",7]', 1), '7')
  assert.equal(valueIn('1?', 0), '?')
  assert.equal(valueIn('', 0), '?')
})

for (const [what, value] of [
  ['an object', { id: 1 }],
  ['a list', ['a']],
  ['a long text', 'x'.repeat(201)],
  ['no number', Number.NaN],
] as const)
  test(`${what} is nobody, and is told`, () => {
    const faults: string[] = []
    const functions = [() => value as never]
    const shares = sharesFor([{ group: 'g', functions }], '1', '{}', (group, fault) =>
      faults.push(`${group}: ${fault}`),
    )
    assert.equal(shareIn(shares, 'g'), '1?')
    assert.equal(faults.length, 1)
    assert.match(faults[0]!, /^g: it returned/)
  })

test('a promise is nobody, and if it rejects, that ends no thread', async () => {
  const functions = [() => Promise.reject(new Error('no tenant')) as never]
  const faults: string[] = []
  const shares = sharesFor([{ group: 'g', functions }], '1', '{}', (_, fault) => faults.push(fault))
  assert.equal(shareIn(shares, 'g'), '1?')
  assert.deepEqual(faults, ['it returned object'])
  // A rejection that nobody has looked at by then fails the test.
  await new Promise(setImmediate)
})

test('more than an event can carry is nobody', () => {
  const faults: string[] = []
  const many = Array.from({ length: 200 }, (_, n) => ({ group: `group${n}`, functions: [() => '\u0001'.repeat(200)] }))
  const shares = sharesFor(many, '2', '{}', (group) => faults.push(group))
  assert.equal(shareIn(shares, 'group7'), '2?')
  assert.equal(faults.length, 200)
})
