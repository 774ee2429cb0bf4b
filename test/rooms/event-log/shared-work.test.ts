import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../support/until.ts'
import { kill } from './databases.ts'
import { Steps } from './steps.ts'

const EVENTS = 40
const MS = 100

test('a burst of slow work is shared, and a process that is killed meanwhile loses nothing', async (t) => {
  const steps = await Steps.make(t)
  if (steps === null) return
  const [first, second] = await Promise.all([steps.start('first'), steps.start('second')])
  await steps.areReady(2)
  const burst = async (count: number): Promise<void> => {
    await Promise.all(Array.from({ length: count }, (_, n) => steps.give(first!, n, { ms: MS })))
  }
  await burst(EVENTS)
  const shares = new Map<string, number>()
  const notes = await steps.allHandled()
  for (const { what, replica } of notes) if (what === 'end') shares.set(replica, (shares.get(replica) ?? 0) + 1)
  assert.equal((shares.get('first') ?? 0) + (shares.get('second') ?? 0), EVENTS, 'each once')
  assert.ok((shares.get('second') ?? 0) >= EVENTS / 5, `the second one has its share: ${[...shares]}`)

  for (const [victim, other] of [
    ['second', 'first'],
    ['first', 'third'],
  ] as const) {
    const begun = async () =>
      (await steps.notes()).filter(({ what, replica }) => what === 'begin' && replica === victim).length
    const before: number = await begun()
    await burst(EVENTS)
    await until(async () => (await begun()) > before, `work of ${victim}`)
    if (other === 'third') await steps.start('third')
    await kill(victim === 'first' ? first! : second!)
    await steps.allHandled()
  }
})
