import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { BLOCK_POSITIONS, LOG_MEMORY_BYTES, LogMemory } from '../../../src/transport/memory/log-memory.ts'

const memory = (): LogMemory => new LogMemory(new SharedArrayBuffer(LOG_MEMORY_BYTES))

test('on a file positions follow each other from the first that is free', () => {
  const log = memory()
  assert.equal(log.isOpen, false)
  log.open(7)
  assert.deepEqual([log.isOpen, log.epoch, log.take(3), log.take(1), log.next], [true, 0, 7, 10, 11])
})

test('on a server they are those of the blocks, and those of one call are neighbours', () => {
  const log = memory()
  log.addBlock(5 * BLOCK_POSITIONS)
  log.addBlock(9 * BLOCK_POSITIONS)
  log.openBlocks(3)
  assert.deepEqual([log.epoch, log.blocksLeft], [3, 2])
  assert.equal(log.take(BLOCK_POSITIONS - 2), 5 * BLOCK_POSITIONS)
  assert.equal(log.take(2), 6 * BLOCK_POSITIONS - 2, 'the last two of the block')
  assert.equal(log.take(BLOCK_POSITIONS - 1), 9 * BLOCK_POSITIONS)
  assert.throws(() => log.take(2), /No position in the event log is free/)
  log.addBlock(12 * BLOCK_POSITIONS)
  // The numbers that were taken in vain are left out.
  assert.equal(log.take(2), 12 * BLOCK_POSITIONS + 3)
  assert.equal(log.blocksLeft, 1)
})

test('many blocks go round in the memory', () => {
  const log = memory()
  log.addBlock(0)
  log.openBlocks(1)
  for (let block = 1; block < 30; block++) {
    log.addBlock(2 * block * BLOCK_POSITIONS)
    log.take(BLOCK_POSITIONS)
    assert.equal(log.next, 2 * block * BLOCK_POSITIONS)
  }
})

test('an insert that begins as the kind of the log changes is counted for the new one alone', () => {
  let beforeCount = (): void => {}
  const log = memoryThatCounts(() => beforeCount())
  // Another thread, between the look at the kind and the count.
  beforeCount = () => {
    beforeCount = () => {}
    log.share()
  }
  assert.equal(log.beginInsert(), true)
  assert.deepEqual([log.insertsOpen(false), log.insertsOpen(true)], [0, 1])
  log.insertEnded(true)
  assert.equal(log.insertsOpen(true), 0)
})

/** The module takes the functions of Atomics when it is loaded. */
function memoryThatCounts(beforeCount: () => void): LogMemory {
  const load = createRequire(import.meta.url)
  const file = load.resolve('../../../src/transport/memory/log-memory.ts')
  const loaded = load.cache[file]
  const { add } = Atomics
  delete load.cache[file]
  Atomics.add = ((...args: Parameters<typeof add>) => {
    beforeCount()
    return add(...args)
  }) as typeof add
  try {
    const again = load(file) as { LogMemory: typeof LogMemory }
    return new again.LogMemory(new SharedArrayBuffer(LOG_MEMORY_BYTES))
  } finally {
    Atomics.add = add
    load.cache[file] = loaded
  }
}
