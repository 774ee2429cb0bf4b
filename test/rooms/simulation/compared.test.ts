/** Holds that the simulated server answers as PostgreSQL does: what some runs have done is done on a real one, and each answer is compared. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareRun } from '../../simulation/stored/compared.ts'
import { postgresServer } from '../../support/servers/postgres.ts'

const SEEDS = [1, 2, 3, 4, 5, 6, 9, 11, 14, 57]

test('the simulated server and PostgreSQL answer each statement of a run alike', async (t) => {
  const server = await postgresServer(t)
  if (server === null) return
  const { host, port, user, password } = server
  let statements = 0
  for (const seed of SEEDS) {
    const database = await server.createDatabase()
    const compared = await compareRun(seed, { host, port, user, password, database })
    assert.equal(compared.difference, null, `seed ${seed}: ${compared.difference}`)
    statements += compared.statements
  }
  t.diagnostic(`${statements} statements`)
  assert.ok(statements > 1000)
})
