import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inChild } from '../../../bench/child.ts'
import type measureQueries from '../../../bench/elastic/db.ts'
import { measureState } from '../../../bench/elastic/state.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { redisServer } from '../../support/servers/redis.ts'

test('the benchmark of PostgreSQL runs to its end', async (t) => {
  const server = await postgresServer(t, { own: true })
  if (server === null) return
  const { host, port, user, password, database } = server
  const access = { host, port, user, password, database }
  const plan = { access, connections: 2, callers: 4, measureMs: 50, rounds: 1 }
  const figures = await inChild<typeof measureQueries>('elastic/db.ts', plan)
  for (const side of ['heddle', 'bare', 'bareNamed'] as const) assert.ok(figures[side].perSecond > 0, side)
})

test('the benchmark of shared state runs to its end', async (t) => {
  const server = await redisServer(t, { own: true })
  if (server === null) return
  const { faults, heddle } = await measureState({ env: server.env, measureMs: 50, rounds: 1 })
  assert.deepEqual(faults, [])
  assert.ok(heddle.perSecond > 0)
})
