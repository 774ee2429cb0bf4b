/** Deliveries that wait in the ring of a lane that crashes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const DOMAINS = fileURLToPath(new URL('../../fixtures/unbegun', import.meta.url))
const EVENTS = 40

for (const how of ['crashed', 'broken'])
  test(`what a lane has not begun when it is ${how} goes to others, and is no suspect`, async (t) => {
    const heddle = await startHeddle(t, { domains: [DOMAINS], lanes: 2, env: { EVENT_BUS_DRIVER: 'in_process' } })
    const told = (text: string): number[] =>
      heddle.logs
        .flatMap(({ msg }) => (msg.startsWith(text) ? [Number(msg.slice(text.length))] : []))
        .sort((a, b) => a - b)
    const all = [...Array(EVENTS).keys()]
    assert.equal((await heddle.post('/crash', { events: EVENTS, how })).status, 200)
    await until(async () => told('ends ').length === EVENTS, 'all events handled', 60_000)
    // One after another they would take minutes: none was tried alone.
    assert.deepEqual([told('begins '), told('ends ')], [all, all])
  })
