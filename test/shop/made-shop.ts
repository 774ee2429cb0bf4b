import assert from 'node:assert/strict'
import { cpSync, mkdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { end, run, serve } from '../package/packed.ts'

const SOURCES = fileURLToPath(new URL('./application', import.meta.url))

/** Puts a packed file into a folder, with its command in `node_modules/.bin`. */
type Install = (folder: string, packedFile: string) => Promise<void>

/** The shop as its author has it: `heddle create shop`, its own files, an installed package. */
export class MadeShop {
  readonly folder: string
  readonly #env: Record<string, string>
  readonly #install: Install

  private constructor(folder: string, env: Record<string, string>, install: Install) {
    this.folder = folder
    this.#env = env
    this.#install = install
  }

  /** @param within an empty folder @param bin folder of the `node` that runs it; default: this one */
  static async make(within: string, packedFile: string, install: Install, bin?: string): Promise<MadeShop> {
    const env: Record<string, string> = bin === undefined ? {} : { PATH: `${bin}${delimiter}${process.env.PATH}` }
    const tool = join(within, 'tool')
    mkdirSync(tool, { recursive: true })
    await install(tool, packedFile)
    const created = await run(join(tool, 'node_modules/.bin/heddle'), ['create', 'shop'], within, env)
    assert.equal(created.code, 0, created.output)
    const shop = new MadeShop(join(within, 'shop'), env, install)
    cpSync(SOURCES, shop.folder, { recursive: true })
    await install(shop.folder, packedFile)
    return shop
  }

  /** The same folder with another `node`. */
  on(bin: string): MadeShop {
    return new MadeShop(this.folder, { PATH: `${bin}${delimiter}${process.env.PATH}` }, this.#install)
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

  /** Starts it as `npm start` does. @returns the number of its products, one of which this has added */
  async addOneProduct(env: Record<string, string> = {}): Promise<number> {
    const served = await serve(this.folder, ['start'], { ...this.#env, SHOP_ADMIN_EMAIL: 'a@b.example', ...env })
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

  upgrade(packedFile: string): Promise<void> {
    return this.#install(this.folder, packedFile)
  }

  #heddle(args: string[], env: Record<string, string> = {}) {
    return run(join(this.folder, 'node_modules/.bin/heddle'), args, this.folder, { ...this.#env, ...env })
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
