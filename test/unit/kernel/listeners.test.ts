import assert from 'node:assert/strict'
import { test } from 'node:test'
import { added, tellAll } from '../../../src/runtime/kernel/listeners.ts'

const refuse = (thrown: unknown): never => assert.fail(String(thrown))

test('a listener that takes itself out while it is told does not make the next one miss the record', () => {
  const told: string[] = []
  const listeners: ((record: number) => void)[] = []
  const leave = added(listeners, (record) => {
    told.push(`first ${record}`)
    leave()
  })
  added(listeners, (record) => told.push(`second ${record}`))
  tellAll(listeners, 1, refuse)
  tellAll(listeners, 2, refuse)
  assert.deepEqual(told, ['first 1', 'second 1', 'second 2'])
})

test('a listener that throws is reported once, and the others hear every record', () => {
  const told: number[] = []
  const faults: unknown[] = []
  const listeners: ((record: number) => void)[] = [
    () => {
      throw new Error('deaf')
    },
    (record) => told.push(record),
  ]
  tellAll(listeners, 1, (thrown) => faults.push(thrown))
  tellAll(listeners, 2, (thrown) => faults.push(thrown))
  assert.deepEqual(told, [1, 2])
  assert.equal(faults.length, 1)
})
