import { Redis } from 'ioredis'
import pg from 'pg'
import { Database } from '../../../src/stores/sqlite/driver.ts'
import type { RedisServer } from '../../support/servers/redis.ts'
import type { Evidence, HandledRow, PlacedRow } from './verdict.ts'

/** What the database says; the processes may be running or gone. */
export interface EvidenceSource {
  read(): Promise<Omit<Evidence, 'asked' | 'letters' | 'deleted'>>
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

/** The rows are in the database, the events in the streams of Redis. */
export const withStreams = (rows: EvidenceSource, { host, port, password }: RedisServer): EvidenceSource => {
  async function open(): Promise<string[]> {
    const redis = new Redis({ host, port, password, lazyConnect: true, retryStrategy: () => null })
    redis.on('error', () => {})
    await redis.connect()
    try {
      const streams = (await redis.keys('heddle:event:*')).sort()
      const [delayed, places, waiting] = await Promise.all([
        redis.zcard('heddle:delayed'),
        Promise.all(['heddle:places:*', 'heddle:aside:*'].map((keys) => redis.keys(keys))),
        Promise.all(streams.map(async (stream) => ((await isDone(redis, stream)) ? [] : [stream]))),
      ])
      return [...waiting.flat(), ...places.flat(), ...(delayed > 0 ? ['heddle:delayed'] : [])]
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

/** Every group that threads share has acknowledged all entries. */
async function isDone(redis: Redis, stream: string): Promise<boolean> {
  if ((await redis.type(stream)) !== 'stream') return true
  const [groups, last] = await Promise.all([
    redis.xinfo('GROUPS', stream) as Promise<unknown[][]>,
    redis.xrevrange(stream, '+', '-', 'COUNT', 1),
  ])
  return groups.every((fields) => {
    const of = (name: string) => fields[fields.indexOf(name) + 1]
    if (String(of('name')).includes('@')) return true
    return of('pending') === 0 && (last.length === 0 || of('last-delivered-id') === last[0]![0])
  })
}
