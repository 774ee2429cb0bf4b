// What is given up leaves nothing behind.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { spawnHeddle } from '../../support/heddle.ts'
import { within } from '../../support/until.ts'

test('no process is started for a test that has ended, which nobody would end', async () => {
  const ends: (() => Promise<void>)[] = []
  const owner = { after: (end: () => Promise<void>) => void ends.push(end) }
  const { child } = await spawnHeddle(owner, { args: ['--no-such-flag'] })
  for (const end of ends) await end()
  assert.ok(child.exitCode !== null || child.signalCode !== null)
  await assert.rejects(spawnHeddle(owner), /The test has ended/)
})

test('a wait that is over says what it has waited for', async () => {
  assert.equal(await within(Promise.resolve('there'), () => 'it', 60_000), 'there')
  await assert.rejects(
    within(new Promise(() => {}), () => 'what never comes', 1),
    /Not within 1 ms: what never comes/,
  )
})
