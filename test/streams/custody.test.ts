import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Custody } from '../../src/streams/custody.ts'

function custody() {
  const changes: string[] = []
  return { changes, held: new Custody((stream, group) => changes.push(`${stream} ${group}`)) }
}

test('what is held is known entry by entry, of its stream and its group alone', () => {
  const { held } = custody()
  held.add('s', 'g', '1-0', 10)
  held.add('s', 'g', '2-0', 5)
  held.add('s', 'other', '1-0', 7)
  assert.equal(held.has('s', 'g', '1-0'), true)
  assert.equal(held.has('s', 'other', '2-0'), false)
  assert.equal(held.has('t', 'g', '1-0'), false)
  assert.deepEqual(held.sizeOf('s', 'g'), { count: 2, chars: 15 })
  assert.deepEqual(held.sizeOf('s', 'other'), { count: 1, chars: 7 })
  assert.deepEqual(held.sizeOf('t', 'g'), { count: 0, chars: 0 })
  assert.deepEqual(held.all(), [
    { stream: 's', group: 'g', ids: ['1-0', '2-0'] },
    { stream: 's', group: 'other', ids: ['1-0'] },
  ])
})

test('an entry that is added again counts once, with its last length', () => {
  const { held } = custody()
  held.add('s', 'g', '1-0', 10)
  held.add('s', 'g', '1-0', 4)
  assert.deepEqual(held.sizeOf('s', 'g'), { count: 1, chars: 4 })
})

test('what is taken out is gone, and a pair with nothing left is gone too', () => {
  const { held } = custody()
  held.add('s', 'g', '1-0', 0)
  held.add('s', 'g', '2-0', 5)
  held.delete('s', 'g', '1-0')
  assert.equal(held.has('s', 'g', '1-0'), false)
  assert.deepEqual(held.sizeOf('s', 'g'), { count: 1, chars: 5 })
  held.delete('s', 'g', '2-0')
  assert.deepEqual(held.all(), [])
  assert.deepEqual(held.sizeOf('s', 'g'), { count: 0, chars: 0 })
})

test('each change is told of after it has been made; what was not held changes nothing', () => {
  const sizes: number[] = []
  const told: Custody = new Custody((stream, group) => sizes.push(told.sizeOf(stream, group).count))
  told.add('s', 'g', '1-0', 1)
  told.add('s', 'g', '2-0', 1)
  told.delete('s', 'g', '1-0')
  told.delete('s', 'g', '2-0')
  assert.deepEqual(sizes, [1, 2, 1, 0])

  const { changes, held } = custody()
  held.delete('s', 'g', '1-0')
  held.add('s', 'g', '1-0', 1)
  held.delete('s', 'g', '2-0')
  held.delete('s', 'other', '1-0')
  assert.deepEqual(changes, ['s g'])
})

test('the list of all is a copy', () => {
  const { held } = custody()
  held.add('s', 'g', '1-0', 1)
  const list = held.all()
  held.delete('s', 'g', '1-0')
  assert.deepEqual(list, [{ stream: 's', group: 'g', ids: ['1-0'] }])
})
