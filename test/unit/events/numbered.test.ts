import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Numbered } from '../../../src/core/collections/numbered.ts'

test('items under rising numbers are found and taken as in a Map, however old they get', () => {
  const numbered = new Numbered<string>()
  const map = new Map<number, string>()
  let seed = 7
  const random = (below: number) => {
    seed = (seed * 16807) % 2147483647
    return seed % below
  }
  // Beyond 2^31 too: positions of the log are that large.
  let next = 2 ** 31 - 20_000
  for (let step = 0; step < 60_000; step++) {
    const number = next++
    numbered.set(number, `item ${number}`)
    map.set(number, `item ${number}`)
    if (step % 100 === 0) continue
    const other = number - random(5000)
    assert.equal(numbered.get(other), map.get(other))
    assert.equal(numbered.take(other), map.get(other))
    map.delete(other)
    if (map.size > 6000) {
      for (const each of [...map.keys()].slice(0, 5500)) {
        assert.equal(numbered.take(each), map.get(each))
        map.delete(each)
      }
    }
  }
  assert.equal(numbered.size, map.size)
  assert.deepEqual(numbered.numbers(), [...map.keys()])
  assert.deepEqual(numbered.items(), [...map.values()])
})

test('an item under a number that is in use takes its place, in a slot or not', () => {
  const numbered = new Numbered<string>()
  numbered.set(5, 'old')
  for (let number = 1; number < 4; number++) numbered.set(5 + number * 2 ** 20, 'later')
  numbered.set(5, 'new')
  assert.equal(numbered.get(5), 'new')
  assert.equal(numbered.size, 4)
  assert.equal(numbered.take(5), 'new')
  assert.equal(numbered.get(5), undefined)
  assert.equal(numbered.take(5), undefined)
  assert.equal(numbered.size, 3)
})
