import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Note, Steps } from './steps.ts'

/** Between two publications of a key: what is published while a process joins is enough, and not thousands. */
const PAUSE_MS = 15
const KEYS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']

/**
 * Each step begins after all that were published before it, and one at a time. What is handled again, because a killed process could not say that it was
 * handled, comes as it comes.
 */
function assertOrder(notes: readonly Note[]): void {
  for (const key of KEYS) {
    let highest = 0
    let open: Note | null = null
    const seen = new Set<string>()
    const ofKey = notes.filter((each) => each.key === key)
    for (const note of ofKey) {
      const { what, number, event_id, replica } = note
      const place = `${key} ${number} in ${replica} (${event_id})`
      if (what === 'begin') {
        const isAlone = open === null || open.event_id === event_id
        assert.ok(isAlone, `${place} began before ${open?.number} ended in ${open?.replica}\n${history(ofKey)}`)
        assert.ok(seen.has(event_id) || number >= highest, `${place} began after ${highest}\n${history(ofKey)}`)
        highest = Math.max(highest, number)
        seen.add(event_id)
        open = note
      } else if (open?.event_id === event_id) open = null
    }
  }
}

const history = (notes: readonly Note[]): string =>
  notes.map(({ what, number, replica, event_id }) => `${number} ${what} ${replica} ${event_id}`).join('\n')

test('what waits for its turn keeps its place while another process joins', async (t) => {
  const steps = await Steps.make(t)
  if (steps === null) return
  await steps.start('first')
  // Handled for as long as the other one takes to join: what comes meanwhile waits behind it.
  await Promise.all(KEYS.map((key) => steps.publish(key, [1], { ms: 5000 })))
  let hasJoined = false
  const publishing = KEYS.map(async (key) => {
    for (let number = 2; !hasJoined; number++) {
      await steps.publish(key, [number])
      await sleep(PAUSE_MS)
    }
  })
  await steps.start('second')
  await steps.areReady(2)
  hasJoined = true
  await Promise.all(publishing)
  assertOrder(await steps.allHandled())
})
