import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import type { Heddle } from './heddle.ts'

/** A suite, as what ends what it has started. */
interface Owner {
  after(end: () => Promise<void>): void
}

/**
 * One service for all tests of a `describe`. After them it must end with code 0 when it is told to stop.
 * @returns how the tests get it
 */
export function shareService(start: (owner: Owner) => Promise<Heddle>): () => Heddle {
  const ends: (() => Promise<void>)[] = []
  let service: Heddle
  before(async () => {
    service = await start({ after: (end) => void ends.push(end) })
  })
  after(async () => {
    try {
      assert.equal(await service.stop(), 0, 'the exit code')
    } finally {
      for (const end of ends.reverse()) await end()
    }
  })
  return () => service
}
