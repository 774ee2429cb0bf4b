import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Database } from '../../support/databases.ts'
import type { Heddle } from '../../support/heddle.ts'
import { rowsOfFile } from '../../support/rows.ts'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { deathOf, starterOn } from './lasting-database.ts'

export interface Effects {
  inbox: { event_id: string }[]
  keys: { key: string }[]
  effects: { event_id: string; name: string; attempt: number }[]
  counters: { name: string; value: number }[]
  letters: unknown[]
}

export const effectsOf = async (heddle: Heddle): Promise<Effects> => (await heddle.json('/effects')).body

/** Resolves when the effects have these names. */
export async function namesAre(heddle: Heddle, ...names: string[]): Promise<Effects> {
  let found: Effects | undefined
  await until(
    async () => {
      found = await effectsOf(heddle)
      return found.effects.length >= names.length
    },
    `the effects ${names.join(', ')}`,
  )
  assert.deepEqual(
    found!.effects.map(({ name }) => name),
    names,
  )
  return found!
}

/** One process dies when the transaction of a subscriber has been committed, and nobody knows yet. */
export async function dieAfterCommit(t: TestContext, database: Database, env: Record<string, string>, bare = false) {
  const { start, path } = await starterOn(t, database)
  const first = await start({ ...env, DIE_AT: 'work.done' })
  await post(first, '/events', { event: 'work.wanted', payload: { name: 'a' }, bare }).catch(() => {})
  assert.equal(await deathOf(first), 'SIGKILL')
  return { start: () => start(env), path }
}

/** What a process that has died after the commit has done is not done again, and what comes after it is. */
export async function isDoneOnce(t: TestContext, database: Database, driver: string): Promise<void> {
  const { start, path } = await dieAfterCommit(t, database, { EVENT_BUS_DRIVER: driver })
  const waiting = 'SELECT event FROM heddle_delivery ORDER BY event'
  if (database.name === 'SQLite') {
    assert.deepEqual(await rowsOfFile(path)(waiting), [{ event: 'work.done' }, { event: 'work.wanted' }])
  }
  const second = await start()
  const { effects } = await namesAre(second, 'a', 'a done')
  assert.equal(effects[0]!.attempt, 1)
  // Handled after the other one, which has been skipped by then.
  await post(second, '/events', { event: 'work.wanted', payload: { name: 'b' } })
  await namesAre(second, 'a', 'a done', 'b', 'b done')
  if (database.name === 'SQLite') {
    await until(async () => (await rowsOfFile(path)(waiting)).length === 0, 'an empty log')
    assert.equal((await rowsOfFile(path)('SELECT event_id FROM heddle_inbox')).length, 2)
  }
}
