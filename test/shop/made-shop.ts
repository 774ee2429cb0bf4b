import assert from 'node:assert/strict'
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { end, run, serve } from '../rooms/package/packed.ts'
import { createApplication, dependOn, type Program } from '../support/created-application.ts'

const WITH_DRIZZLE = fileURLToPath(new URL('./with-drizzle', import.meta.url))
/** The versions that the adapters are tested with. */
const VERSIONS = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).devDependencies
const SOURCES = fileURLToPath(new URL('./application', import.meta.url))

/** The shop as its author has it: `heddle create shop`, its own files, an installed package. */
export class MadeShop {
  readonly folder: string
  readonly #program: Program

  private constructor(folder: string, program: Program) {
    this.folder = folder
    this.#program = program
  }

  /** @param within an empty folder */
  static async make(within: string, packed: string, program: Program): Promise<MadeShop> {
    const created = ['shop', '--with', 'postgres,redis,checks'] as const
    const folder = await createApplication(within, created, packed, program, (made) => {
      cpSync(SOURCES, made, { recursive: true })
      dependOn(made, { kysely: VERSIONS.kysely })
    })
    return new MadeShop(folder, program)
  }

  /** The same folder with another `node`. */
  on(program: Program): MadeShop {
    return new MadeShop(this.folder, program)
  }

  async check(): Promise<void> {
    const { code, output } = await this.#heddle(['check'])
    assert.equal(code, 0, output)
  }

  /** Runs the shop's own tests. @param env listener, implementations, servers */
  async test(env: Record<string, string> = {}): Promise<void> {
    const { code, output } = await this.#heddle(['test', 'shop/'], env)
    assert.equal(code, 0, output)
    assert.match(output, /pass 7\b/)
  }

  /** `heddle migrate` with each of its commands, and `heddle db types`. @param env the database, which loses what it has */
  async migrate(env: Record<string, string> = {}): Promise<void> {
    const run = async (args: string, expected: RegExp, code = 0) => {
      const outcome = await this.#heddle(args.split(' '), env)
      assert.deepEqual([args, outcome.code], [args, code], outcome.output)
      assert.match(outcome.output, expected)
    }
    await run('migrate reset', /Applied migration shop\/002_orders\n.*Ran seed shop\/products/s)
    await run('migrate status', /shop\/002_orders +applied +\(down\)/)
    await run('migrate down', /Took back migration shop\/002_orders/)
    await run('migrate status', /shop\/002_orders +pending/, 1)
    await run('migrate up', /Applied migration shop\/002_orders/)
    await run('migrate seed', /Ran seed shop\/products/)
    await run('db types --check', /db-types\.ts is up to date/)
  }

  /** Whether it starts. @param env the listener @throws for any reason but that the listener has no binary here */
  async startsWith(env: Record<string, string>): Promise<boolean> {
    try {
      const served = await serve(this.folder, ['start'], { ...this.#program.env, ...env })
      assert.equal(await served.stop(), 0)
      return true
    } catch (error) {
      if (/uWebSockets\.js does not load here/.test(String(error))) return false
      throw error
    }
  }

  /** Starts it as `npm start` does. @returns the number of its products, one of which this has added */
  async addOneProduct(env: Record<string, string> = {}): Promise<number> {
    const served = await serve(this.folder, ['start'], {
      ...this.#program.env,
      SHOP_ADMIN_EMAIL: 'a@b.example',
      ...env,
    })
    try {
      const post = async (path: string, body: object, token = '') => {
        const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
        const answer = await fetch(served.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
        // biome-ignore lint/suspicious/noExplicitAny: a test asserts what it is
        return { status: answer.status, data: ((await answer.json()) as any).data }
      }
      const credentials = { email: 'a@b.example', password: 'correct horse' }
      await post('/accounts', credentials)
      const { token } = (await post('/login', credentials)).data
      assert.equal((await post('/products', { name: 'Loom', price_cents: 1, available: 1 }, token)).status, 201)
      const listed = (await (await fetch(`${served.url}/products`)).json()) as { data: unknown[] }
      assert.equal(await served.stop(), 0)
      return listed.data.length
    } finally {
      end(served)
    }
  }

  /** Gives it a plugin that asks by Drizzle. */
  async addDrizzle(packed: string): Promise<void> {
    cpSync(WITH_DRIZZLE, this.folder, { recursive: true })
    dependOn(this.folder, { 'drizzle-orm': VERSIONS['drizzle-orm'] })
    await this.#program.install(this.folder, packed)
  }

  /** Has that plugin raise the prices of the seeds. */
  async raisePrices(env: Record<string, string>): Promise<void> {
    const served = await serve(this.folder, ['start'], { ...this.#program.env, ...env })
    try {
      const answer = await fetch(`${served.url}/prices`, { method: 'POST' })
      const { data } = (await answer.json()) as { data: number[] }
      assert.deepEqual([...data].sort(), [149_001, 19_901, 2501, 901])
      assert.equal(await served.stop(), 0)
    } finally {
      end(served)
    }
  }

  upgrade(packed: string): Promise<void> {
    return this.#program.install(this.folder, packed)
  }

  #heddle(args: string[], env: Record<string, string> = {}) {
    return run(join(this.folder, 'node_modules/.bin/heddle'), args, this.folder, { ...this.#program.env, ...env })
  }
}

/** What makes it run on servers. */
export function serversEnv(
  postgres: { user: string; password: string; host: string; port: number; database: string },
  redis: { env: Record<string, string> },
): Record<string, string> {
  const { user, host, port, database } = postgres
  const { KV_HOST, KV_PORT, KV_PASSWORD = '', KV_DB = '0' } = redis.env
  return {
    TOOLS: 'postgres,redis-state',
    DATABASE_URL: `postgres://${user}:${encodeURIComponent(postgres.password)}@${host}:${port}/${database}`,
    REDIS_URL: `redis://:${encodeURIComponent(KV_PASSWORD)}@${KV_HOST}:${KV_PORT}/${KV_DB}`,
  }
}
