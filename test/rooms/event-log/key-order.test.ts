import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../support/until.ts'
import { kill } from './databases.ts'
import { type Note, Steps } from './steps.ts'

/** Between two publications of a key: what is published while a process joins is enough, and not thousands. */
const PAUSE_MS = 15
const KEYS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']

/**
 * Each step begins after all that were published before it, and one at a time. What is handled again, because a killed process could not say that it was
 * handled, comes as it comes.
 * @param killed replicas: what they had begun is begun again
 */
function assertOrder(notes: readonly Note[], killed: readonly string[] = []): void {
  for (const key of KEYS) {
    let highest = 0
    let open: Note | null = null
    const seen = new Set<string>()
    const ofKey = notes.filter((each) => each.key === key)
    for (const note of ofKey) {
      const { what, number, event_id, replica } = note
      const place = `${key} ${number} in ${replica} (${event_id})`
      if (what === 'begin') {
        const isAlone = open === null || open.event_id === event_id || killed.includes(open.replica)
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

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => from + n)

test('events of one key that several processes publish are handled in their order, one at a time', async (t) => {
  const steps = await Steps.make(t)
  if (steps === null) return
  await Promise.all([steps.start('first'), steps.start('second')])
  await Promise.all(KEYS.map((key) => steps.publish(key, numbers(1, 12))))
  const notes = await steps.allHandled()
  assertOrder(notes)
  assert.deepEqual([...new Set(notes.map(({ replica }) => replica))].sort(), ['first', 'second'], 'both have a part')
})

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

test('the order of a key holds while processes come, are killed and end', async (t) => {
  const steps = await Steps.make(t)
  if (steps === null) return
  const first = await steps.start('first')
  const publishing = Promise.all(KEYS.map((key) => steps.publish(key, numbers(1, 60), { ms: 3 })))
  const reached = (number: number) => until(() => steps.accepted.has(`a ${number}`), `step ${number}`)
  await reached(5)
  const second = await steps.start('second')
  await reached(20)
  steps.gone(first)
  await kill(first)
  await reached(30)
  await steps.start('third')
  await reached(45)
  steps.gone(second)
  assert.equal(await second.stop(), 0)
  await publishing
  assertOrder(await steps.allHandled(), ['first'])
})
