// Which events are tried a few at a time, since processes may have died of them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SYSTEM_CLOCK } from '../../../src/core/schedule/clock.ts'
import type { StoredRow } from '../../../src/primary/event-log/sql-log.ts'
import { Trials } from '../../../src/primary/event-log/trials.ts'

/** @returns the deaths that were stored before the event was delivered; none: it is not under suspicion */
async function storedOf(areDeathsKnown: boolean, recovered: number, uncleanEnds: number): Promise<number[]> {
  const stored: number[] = []
  const trials = new Trials({
    hub: { groupsOf: () => ['shop.Send'] },
    clock: SYSTEM_CLOCK,
    events: { live: () => undefined },
    settler: {
      settle: (_: string, { deaths }: { deaths: number }) => void stored.push(deaths),
      written: async () => {},
    },
    groups: { absentOf: () => [] },
    areDeathsKnown,
    isUnderSuspicion: () => true,
    deliver: () => {},
    isEnding: () => false,
  } as unknown as ConstructorParameters<typeof Trials>[0])
  trials.uncleanEnds = Array.from({ length: uncleanEnds }, () => 7)
  await trials.run(
    [{ row: { seq: 7, event: 'order.paid', recovered }, left: null } as unknown as StoredRow],
    () => false,
  )
  return stored
}

test('after three deaths that nobody has seen an event is tried, and after six that the guardian has not seen it in', async () => {
  for (const [areDeathsKnown, recovered, ends, isTried] of [
    [false, 0, 2, false],
    [false, 0, 3, true],
    [false, 3, 0, true],
    [true, 3, 0, true],
    [true, 2, 0, false],
    [true, 0, 5, false],
    [true, 0, 6, true],
  ] as const)
    assert.deepEqual(
      await storedOf(areDeathsKnown, recovered, ends),
      isTried ? [1] : [],
      `${areDeathsKnown} ${recovered} ${ends}`,
    )
})
