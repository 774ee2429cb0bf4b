import pg from 'pg'
import { Database } from '../../../src/stores/sqlite/driver.ts'
import type { Evidence, HandledRow, PlacedRow } from './verdict.ts'

/** What the database says; the processes may be running or gone. */
export interface EvidenceSource {
  read(): Promise<Omit<Evidence, 'asked'>>
  /** Nothing waits in the log. */
  isSettled(): Promise<boolean>
}

type Query = <Row>(sql: string) => Promise<Row[]>

function sourceOn(query: Query): EvidenceSource {
  const ids = async (sql: string): Promise<string[]> => (await query<{ id: string }>(sql)).map(({ id }) => id)
  return {
    read: async () => ({
      placed: await query<PlacedRow>('SELECT number, key, event_id FROM placed'),
      handled: await query<HandledRow>('SELECT * FROM handled ORDER BY position'),
      billed: await ids('SELECT event_id AS id FROM billed'),
      left: await ids('SELECT id FROM heddle_event'),
      letters: await query<{ id: string; error: string }>('SELECT event_id AS id, error FROM heddle_dead'),
    }),
    isSettled: async () => (await query('SELECT seq FROM heddle_event LIMIT 1')).length === 0,
  }
}

export const evidenceInFile = (path: string): EvidenceSource =>
  sourceOn(async <Row>(sql: string) => {
    const database = new Database(path, { readonly: true })
    try {
      return database.prepare(sql).all() as Row[]
    } finally {
      database.close()
    }
  })

export const evidenceOnServer = (access: pg.ClientConfig): EvidenceSource =>
  sourceOn(async <Row>(sql: string) => {
    const client = new pg.Client(access)
    client.on('error', () => {})
    await client.connect()
    try {
      return (await client.query(sql)).rows as Row[]
    } finally {
      await client.end()
    }
  })
