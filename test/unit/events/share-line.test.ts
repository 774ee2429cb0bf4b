/** Deliveries that wait, whose shares take turns. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ShareLine } from '../../../src/primary/events/share-line.ts'

interface Item {
  share: string
  n: number
}

function lineOf(shares: readonly string[], mayTry: (share: string) => boolean = () => true): ShareLine<Item> {
  const line = new ShareLine<Item>(mayTry)
  for (const [n, share] of shares.entries()) line.push({ share, n })
  return line
}

function drained(line: ShareLine<Item>, count = Number.POSITIVE_INFINITY): Item[] {
  const items: Item[] = []
  for (let next = line.peek(); next !== undefined && items.length < count; next = line.peek()) {
    items.push(next)
    assert.equal(line.shift(), next)
  }
  return items
}

const many = (share: string, count: number): string[] => Array.from({ length: count }, () => share)

test('shares take turns, and each keeps its order', () => {
  const items = drained(lineOf([...many('1a', 4), '1b', ...many('1c', 2)]))
  assert.equal(items.map(({ share }) => share[1]).join(''), 'abcacaa')
  const ofA = items.filter(({ share }) => share === '1a').map(({ n }) => n)
  assert.deepEqual(ofA, [0, 1, 2, 3])
})

test('seven of a higher priority are followed by one of each lower that waits', () => {
  const items = drained(lineOf([...many('2', 40), ...many('1', 40), ...many('0', 40)]), 40)
  const of = (priority: string): number => items.filter(({ share }) => share === priority).length
  assert.deepEqual([of('0'), of('1'), of('2')], [32, 4, 4])
  const first = items.map(({ share }) => share).join('')
  assert.match(first, /^0000000[12]/)
  // Without higher ones they go one after another.
  assert.equal(
    drained(lineOf([...many('2', 16), ...many('', 16)]), 16)
      .map(({ share }) => share || 'n')
      .join(''),
    'nnnnnnn2nnnnnnn2',
  )
})

test('a share whose limit is used up stands aside until it is told, and loses nothing', () => {
  const closed = new Set(['1a'])
  const line = lineOf([...many('1a', 3), ...many('1b', 2)], (share) => !closed.has(share))
  assert.equal(drained(line).length, 2)
  assert.equal(line.size, 3)
  assert.equal(line.sizeOf('1a'), 3)
  line.push({ share: '1a', n: 9 })
  assert.equal(line.peek(), undefined)
  closed.clear()
  line.mayTryAgain('1a')
  assert.deepEqual(
    drained(line).map(({ n }) => n),
    [0, 1, 2, 9],
  )
  assert.equal(line.size, 0)
})

test('what has lost its thread goes first, and all can be taken out', () => {
  const line = lineOf(['1a', '0b'])
  line.unshift({ share: '2z', n: 7 })
  assert.equal(line.peek()!.n, 7)
  assert.deepEqual(
    [...line].map(({ n }) => n),
    [7, 1, 0],
  )
  assert.equal(line.takeIf(({ n }) => n !== 1).length, 2)
  assert.equal(line.size, 1)
})

test('one whose limit has let it begin goes, though its share stands aside', () => {
  const line = new ShareLine<Item & { isLet: boolean }>(() => false)
  line.unshift({ share: '1a', n: 1, isLet: false })
  line.unshift({ share: '1a', n: 2, isLet: true })
  assert.equal(line.peek()?.n, 2)
  line.shift()
  assert.equal(line.peek(), undefined)
})
