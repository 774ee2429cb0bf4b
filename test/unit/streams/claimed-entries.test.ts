import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClaimedEntries } from '../../../src/primary/streams/claimer.ts'

function claimed() {
  const told: string[] = []
  return {
    told,
    held: new ClaimedEntries((stream, group, isFull) =>
      told.push(`${stream} ${group} ${isFull ? 'is full' : 'has room'}`),
    ),
  }
}

test('a claimed entry is known by its stream, its group and its id', () => {
  const { held } = claimed()
  held.add('s', 'g', '1-0', 10)
  held.add('s', 'g', '2-0', 5)
  held.add('s', 'other', '1-0', 7)
  assert.equal(held.has('s', 'g', '1-0'), true)
  assert.equal(held.has('s', 'other', '2-0'), false)
  assert.equal(held.has('t', 'g', '1-0'), false)
  assert.deepEqual(held.all(), [
    { stream: 's', group: 'g', ids: ['1-0', '2-0'] },
    { stream: 's', group: 'other', ids: ['1-0'] },
  ])
})

test('an entry that is taken out is gone, and so is a group without entries', () => {
  const { held } = claimed()
  held.add('s', 'g', '1-0', 0)
  held.add('s', 'g', '2-0', 5)
  held.delete('s', 'g', '1-0')
  assert.equal(held.has('s', 'g', '1-0'), false)
  held.delete('s', 'g', '2-0')
  assert.deepEqual(held.all(), [])
})

test('a group is full with a thousand entries and has room when half of them are gone, and each is told once', () => {
  const { held, told } = claimed()
  for (let n = 1; n <= 999; n++) held.add('s', 'g', `${n}-0`, 1)
  held.add('s', 'other', '1-0', 1)
  assert.deepEqual(told, [])
  for (let n = 1000; n <= 1100; n++) held.add('s', 'g', `${n}-0`, 1)
  assert.deepEqual(told, ['s g is full'])
  assert.equal(held.isFull('s', 'g'), true)
  assert.equal(held.isFull('s', 'other'), false)
  for (let n = 1; n <= 599; n++) held.delete('s', 'g', `${n}-0`)
  assert.equal(held.isFull('s', 'g'), true)
  held.delete('s', 'g', '600-0')
  assert.equal(held.isFull('s', 'g'), false)
  for (let n = 601; n <= 1100; n++) held.delete('s', 'g', `${n}-0`)
  assert.deepEqual(told, ['s g is full', 's g has room'])
})

test('a group is full with 32 MiB of payloads too; an entry that is added again counts with its last length', () => {
  const { held, told } = claimed()
  held.add('s', 'g', '1-0', 20 << 20)
  held.add('s', 'g', '1-0', 31 << 20)
  assert.deepEqual(told, [])
  held.add('s', 'g', '2-0', 1 << 20)
  assert.deepEqual(told, ['s g is full'])
  held.delete('s', 'g', '2-0')
  held.delete('s', 'g', '3-0')
  assert.equal(held.isFull('s', 'g'), true)
  held.add('s', 'g', '1-0', 16 << 20)
  assert.deepEqual(told, ['s g is full', 's g has room'])
})

test('the listener sees the entries of that moment; a group without entries has room', () => {
  const sizes: number[] = []
  const held: ClaimedEntries = new ClaimedEntries((_, __, isFull) => {
    sizes.push(held.all()[0]?.ids.length ?? 0)
    assert.equal(held.isFull('s', 'g'), isFull)
  })
  held.add('s', 'g', '1-0', 40 << 20)
  held.delete('s', 'g', '1-0')
  assert.deepEqual(sizes, [1, 0])
})

test('the list of all is a copy', () => {
  const { held } = claimed()
  held.add('s', 'g', '1-0', 1)
  const list = held.all()
  held.delete('s', 'g', '1-0')
  assert.deepEqual(list, [{ stream: 's', group: 'g', ids: ['1-0'] }])
})

test('a group is full with a few entries that no thread has had, and has room when threads have half of them', () => {
  const { held, told } = claimed()
  for (let n = 0; n < 64; n++) held.add('s', 'g', `${n}-0`, 1, true)
  assert.deepEqual(told, ['s g is full'])
  for (let n = 0; n < 31; n++) held.begun('s', 'g', `${n}-0`)
  held.begun('s', 'g', '0-0')
  assert.deepEqual(told, ['s g is full'])
  held.delete('s', 'g', '63-0')
  assert.deepEqual(told, ['s g is full', 's g has room'])
  assert.equal(held.has('s', 'g', '0-0'), true, 'it is held until it is done')
})
