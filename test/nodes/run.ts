import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { packTwo, run } from '../package/packed.ts'
import { MadeShop, serversEnv } from '../shop/made-shop.ts'
import { postgresServer } from '../support/servers/postgres.ts'
import { redisServer } from '../support/servers/redis.ts'

/**
 * `npm run test:nodes`: on each Node that is not the one at hand, a core of the tests, and the shop from the packed file, installed by npm, on
 * both listeners, on SQLite and on PostgreSQL with Redis, and through an upgrade. `npm run test:nodes -- 24` takes that one alone. The Nodes come
 * from npm. `--short`: npm installs once, for the oldest, on which alone the core
 * runs, and the shop runs on SQLite alone.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const NODES = ['22', '24', '26']
/** The start, and the listener that every Node has. The shop goes through lanes, database and events. */
const SHORT = ['cli/node-version', 'http/node-listener']
const CORE = [...SHORT, 'users/']
const NPM = ['--no-audit', '--no-fund', '--prefer-offline']

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { short: { type: 'boolean', default: false } },
})
const versions = positionals.length > 0 ? positionals : NODES
const failed: string[] = []
const endings: (() => Promise<void> | void)[] = []

/** The folder of the program. It stays for the next run. */
function provideNode(version: string): string {
  const folder = join(ROOT, 'node_modules/.cache/nodes', version)
  const bin = join(folder, 'node_modules/node/bin')
  if (existsSync(join(bin, 'node'))) return bin
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "allowScripts": { "node": true } }\n')
  execFileSync('npm', ['install', '--no-save', `node@${version}`], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return bin
}

/** What git has, as it stands here, with the packages of the lock file. Nothing is compiled: npm may not even try. */
async function checkout(to: string, bin: string): Promise<void> {
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' }).split('\0').filter(Boolean)
  for (const file of files) if (existsSync(join(ROOT, file))) cpSync(join(ROOT, file), join(to, file))
  await npm(to, bin, 'ci')
  if (existsSync(join(to, 'node_modules/better-sqlite3'))) throw new Error('npm ci has fetched what it has to compile')
}

async function npm(folder: string, bin: string, ...args: string[]): Promise<void> {
  // All of the environment: a proxy or a certificate of the network is in it.
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` } as Record<string, string>
  const { code, output } = await run('npm', [...args, ...NPM], folder, env)
  if (code !== 0) throw new Error(output)
}

/** As a user does: `npm install heddle-0.1.0.tgz`. */
const installBy =
  (bin: string) =>
  async (folder: string, packedFile: string): Promise<void> => {
    if (!existsSync(join(folder, 'package.json'))) writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
    await npm(folder, bin, 'install', packedFile)
    if (existsSync(join(folder, 'node_modules/better-sqlite3')))
      throw new Error('npm has fetched what it has to compile')
  }

function testCore(copy: string, bin: string): void {
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` }
  const args = ['--require', './test/support/typescript/register.cjs', 'test/run.ts', ...(values.short ? SHORT : CORE)]
  if (spawnSync('node', args, { cwd: copy, stdio: 'inherit', env }).status !== 0) throw new Error('The core failed')
}

async function servers(): Promise<Record<string, string>> {
  const owner = { after: (end: () => Promise<void>) => void endings.push(end), skip: (why: string) => console.log(why) }
  const [postgres, redis] = [await postgresServer(owner), await redisServer(owner)]
  if (postgres === null || redis === null) throw new Error('There is no PostgreSQL, or no Redis')
  return serversEnv({ ...postgres, database: await postgres.createDatabase() }, redis)
}

async function main(): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'heddle-nodes-'))
  endings.push(() => rmSync(work, { recursive: true, force: true }))
  const packed = await packTwo()
  endings.push(packed.end)
  const oldest = provideNode(versions[0]!)
  const copy = join(work, 'copy')
  await checkout(copy, oldest)
  let shop: MadeShop | null = null
  for (const version of versions) {
    const startedMs = performance.now()
    let verdict = 'passed'
    try {
      const bin = provideNode(version)
      if (version === versions[0] || !values.short) testCore(copy, bin)
      if (shop === null || !values.short) {
        shop = await MadeShop.make(join(work, version), packed.first, installBy(bin), bin)
      }
      shop = shop.on(bin)
      await shop.test()
      if (!values.short) {
        await shop.test({ HTTP_LISTENER: 'node' })
        await shop.test(await servers())
        if ((await shop.addOneProduct()) !== 1) throw new Error('There is more than the one product')
        await shop.upgrade(packed.next)
        if ((await shop.addOneProduct({ HTTP_LISTENER: 'node' })) !== 2) throw new Error('The upgrade has lost a row')
      }
    } catch (error) {
      console.error(error)
      failed.push(version)
      verdict = 'FAILED'
    }
    console.log(`Node ${version}: ${verdict} in ${Math.round((performance.now() - startedMs) / 1000)} s`)
  }
}

main()
  .catch((error) => {
    console.error(error)
    failed.push('all')
  })
  .finally(async () => {
    for (const end of endings.reverse()) await end()
    process.exitCode = failed.length === 0 ? 0 : 1
  })
