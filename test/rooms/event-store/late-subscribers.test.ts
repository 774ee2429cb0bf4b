import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Note } from '../../contracts/log-store.ts'
import { folderOf } from '../../support/folder.ts'
import { post } from '../../support/started-service.ts'
import { until } from '../../support/until.ts'
import { isEmpty, type LogStore, onPostgres, onSqlite } from './databases.ts'

const DOMAINS = fileURLToPath(new URL('../../contracts/domains', import.meta.url))
const MADE = {
  SQLite: onSqlite,
  PostgreSQL: (t, domains) => onPostgres(t, false, domains),
} satisfies Record<string, (t: Parameters<typeof onSqlite>[0], domains: string) => Promise<LogStore | null>>

for (const [name, make] of Object.entries(MADE))
  test(`on ${name} who subscribes in a handler gets what the handler publishes then`, async (t) => {
    const store = await make(t, DOMAINS)
    if (store === null) return
    const notes = join(await folderOf(t, { notes: '' }), 'notes')
    const env = { LOG_NAME: 'first', LOG_NOTES: notes, LANE_ENV: 'LOG_NAME,LOG_NOTES' }
    const heddle = await store.start({ EVENT_BUS_DRIVER: 'database', ...env })
    const events = Array.from({ length: 10 }, (_, n) => ({ event: `late.n${n}`, work: { tag: 'late', n } }))
    const answers = await Promise.all(events.map((body) => post(heddle, '/late', body)))
    const ids = answers.map(({ id }) => id as string)
    const handled = async () => {
      const lines = (await readFile(notes, 'utf8')).split('\n').slice(0, -1)
      return lines.map((line) => JSON.parse(line) as Note).flatMap(({ what, id }) => (what === 'end' ? [id] : []))
    }
    await until(async () => (await handled()).length === ids.length, 'all of them')
    assert.deepEqual((await handled()).sort(), ids.sort())
    await isEmpty(store)
  })
