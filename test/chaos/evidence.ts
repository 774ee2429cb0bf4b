import { Redis } from 'ioredis'
import type { Query } from '../support/rows.ts'
import type { RedisServer } from '../support/servers/redis.ts'
import { unfinishedEntries } from '../support/unfinished.ts'
import type { Evidence, HandledRow, PlacedRow } from './verdict.ts'

/** What the database says; the processes may be running or gone. */
export interface EvidenceSource {
  read(): Promise<Omit<Evidence, 'asked' | 'letters' | 'deleted' | 'records'>>
  /** Nothing waits in the log. */
  isSettled(): Promise<boolean>
}

/** Of the rows. */
export function evidenceIn(query: Query): EvidenceSource {
  const events = 'SELECT event_id AS id FROM heddle_delivery'
  const ids = async (sql: string): Promise<string[]> => (await query<{ id: string }>(sql)).map(({ id }) => id)
  return {
    read: async () => ({
      placed: await query<PlacedRow>('SELECT number, key, event_id FROM placed'),
      handled: await query<HandledRow>('SELECT * FROM handled ORDER BY position'),
      billed: await ids('SELECT event_id AS id FROM billed'),
      left: [...new Set(await ids(events))],
      torn: await ids('SELECT id FROM torn'),
    }),
    isSettled: async () => (await query(`${events} LIMIT 1`)).length === 0,
  }
}

/** The rows are in the database, the events in the streams of Redis. */
export const withStreams = (rows: EvidenceSource, { host, port, password }: RedisServer): EvidenceSource => {
  async function open(): Promise<string[]> {
    const redis = new Redis({ host, port, password, lazyConnect: true, retryStrategy: () => null })
    redis.on('error', () => {})
    await redis.connect()
    try {
      // Groups of threads that have died are not done with what these never had.
      const count = await unfinishedEntries(redis, '*', (group) => !group.includes('@'))
      return count === 0 ? [] : [`${count} entries`]
    } finally {
      redis.disconnect()
    }
  }
  return {
    read: async () => {
      const inRows = await rows.read()
      return { ...inRows, left: [...inRows.left, ...(await open())] }
    },
    isSettled: async () => (await rows.isSettled()) && (await open()).length === 0,
  }
}
