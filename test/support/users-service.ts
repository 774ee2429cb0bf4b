import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import type { EventMeta, EventRecord } from '../../src/contracts/event-bus.ts'
import type { Payload } from '../../src/contracts/events.ts'
import type { Database } from './databases.ts'
import { type Heddle, startHeddle } from './heddle.ts'
import { until } from './until.ts'

const DOMAINS = ['../../domains', '../fixtures/users'].map((folder) => fileURLToPath(new URL(folder, import.meta.url)))

/** What passwords are hashed with where that is not what is tested. */
export const CHEAP_AUTH = fileURLToPath(new URL('../rooms/users/tools/cheap-auth', import.meta.url))
export const PASSWORD = 'correct horse battery staple'
/** For tests whose clients all have one address. */
export const NO_LIMITS = { SIGNUP_MAX_PER_ADDRESS: '1000000', LOGIN_MAX_PER_ADDRESS: '1000000' }
export const SECRET = 'the secret of the tests of the users domain'

type Owner = Parameters<typeof startHeddle>[0]

export interface Published {
  event: EventMeta
  data: Payload
}

/** The shipped domains in a real process, with a probe that shows what happened inside. */
export class UsersService {
  readonly heddle: Heddle

  constructor(heddle: Heddle) {
    this.heddle = heddle
  }

  static async start(
    t: Owner,
    database: Database,
    env: Record<string, string> = {},
    { lanes, tools = [] }: { lanes?: number; tools?: string[] } = {},
  ): Promise<UsersService> {
    const all = { AUTH_SECRET_KEY: SECRET, ...NO_LIMITS, ...(await database.env(t, ...tools)), ...env }
    return new UsersService(await startHeddle(t, { domains: DOMAINS, lanes, env: all }))
  }

  post(path: string, body: unknown, headers: Record<string, string> = {}) {
    return this.heddle.post(path, body, headers)
  }

  as(token: string, method: string, path: string) {
    return this.heddle.json(path, { method, headers: { authorization: `Bearer ${token}` } })
  }

  async createUser(email: string, headers: Record<string, string> = {}): Promise<{ id: string; created_at: string }> {
    const { status, body } = await this.post('/users', { name: 'Ada', email, password: PASSWORD }, headers)
    assert.equal(status, 201, JSON.stringify(body))
    return body.data
  }

  async logIn(email: string, password = PASSWORD): Promise<string> {
    const { status, body } = await this.post('/login', { email, password })
    assert.equal(status, 200, JSON.stringify(body))
    return body.data.token
  }

  async records(event: string): Promise<EventRecord[]> {
    const { body } = await this.heddle.json('/probe/events')
    return (body as EventRecord[]).filter((record) => record.event === event)
  }

  /** Calls of a tool's method so far, for example `db.execute`. */
  async calls(method: string): Promise<number> {
    return (await this.heddle.json('/system/metrics')).body.data[method]?.calls ?? 0
  }

  async payloads(): Promise<Published[]> {
    return (await this.heddle.json('/probe/payloads')).body
  }

  /** Waits for an event that has this value in its payload. */
  published(event: string, key: string, value: unknown): Promise<Published> {
    return until(
      async () => (await this.payloads()).find(({ event: meta, data }) => meta.event === event && data[key] === value),
      `${event} with ${key} ${value}`,
    )
  }
}
