import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Packed, packOne } from '../rooms/package/packed.ts'
import { MadeShop } from '../shop/made-shop.ts'
import { Checkout } from './checkout.ts'
import { NodeProgram } from './node-program.ts'
import { Results } from './results.ts'
import { Servers } from './servers.ts'

/**
 * `npm run test:nodes`: on each Node that is not the one at hand, a core of the tests, the contract of the listener on node:http, and the
 * shop from the packed file, installed by npm, on both listeners, on SQLite and on PostgreSQL with Redis, and through an upgrade; then the table of all that.
 * `-- 24` takes that one alone. The Nodes come from npm.
 * `--short`: npm installs once, for the oldest; the core runs on one that is not at hand, the shop on SQLite alone. `--provide` fetches the Nodes, and no more.
 */
const NODES = ['22', '24', '26']
/** The start, and the listener that every Node has. The shop goes through lanes, database and events. */
const SHORT_CORE = ['cli/node-version', 'http/node-listener']
const CORE = [...SHORT_CORE, 'users/', 'adapters/', 'cli/migrate', 'cli/db-types']

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { short: { type: 'boolean', default: false }, provide: { type: 'boolean', default: false } },
})
const lines = positionals.length > 0 ? positionals : NODES
const results = new Results()
const endings: (() => Promise<void> | void)[] = []

async function runShort(work: string, packing: Promise<Packed>): Promise<void> {
  const [oldest, ...others] = await Promise.all(lines.map(NodeProgram.provide))
  // `npm run test:all` has all of it on the Node at hand.
  const all = [oldest!, ...others]
  const isOther = ({ isAtHand }: NodeProgram): boolean => !isAtHand
  const other = all.find(isOther) ?? oldest!
  const tryCore = results.try({ node: other.line, what: 'core' }, async () => {
    const checkout = await Checkout.install(join(work, 'copy'), other)
    await checkout.test(other, SHORT_CORE)
  })
  const { first } = await packing
  const shop = await MadeShop.make(join(work, 'shop'), first, oldest!)
  await tryCore
  // Two at a time: the machine that this is for has two cores.
  const waiting = all.some(isOther) ? all.filter(isOther) : all
  const testSome = async () => {
    for (let program = waiting.shift(); program !== undefined; program = waiting.shift()) {
      const on = shop.on(program)
      await results.try({ node: program.line, what: 'shop', listener: 'auto', database: 'SQLite' }, () => on.test())
    }
  }
  await Promise.all([testSome(), testSome()])
}

async function runLong(work: string, packing: Promise<Packed>): Promise<void> {
  const { first, packNext } = await packing
  const next = await packNext()
  const servers = await Servers.start(endings)
  // The same packages do for all of them, which is worth a test by itself.
  let checkout: Checkout | null = null
  for (const node of lines) {
    const program = await NodeProgram.provide(node)
    // `npm test` has all of them on the Node at hand.
    if (!program.isAtHand) {
      await results.try({ node, what: 'core' }, async () => {
        checkout ??= await Checkout.install(join(work, 'copy'), program)
        await checkout.test(program, CORE)
      })
      await results.try({ node, what: 'contract', listener: 'node' }, async () =>
        checkout?.test(program, [], ['--listener', 'node']),
      )
    }
    let shop: MadeShop | null = null
    const made = await results.try({ node, what: 'create, install, check' }, async () => {
      shop = await MadeShop.make(join(work, node), first, program)
      await shop.check()
    })
    if (made && shop !== null) await runShop(node, shop, servers, next)
  }
}

const SQLITE = 'SQLite'
const SERVERS = 'PostgreSQL, Redis'

async function runShop(node: string, shop: MadeShop, servers: Servers, next: string): Promise<void> {
  const hasUws = await shop.startsWith({ HTTP_LISTENER: 'uws' })
  for (const listener of ['uws', 'node']) {
    for (const database of [SQLITE, SERVERS]) {
      const trial = { node, what: 'shop', listener, database }
      if (listener === 'uws' && !hasUws) {
        results.leaveOut(trial)
        continue
      }
      await results.try(trial, async () => {
        const env = database === SERVERS ? await servers.fresh() : {}
        await shop.test({ HTTP_LISTENER: listener, ...env })
        if (database === SERVERS) await servers.assertOrders(env)
      })
    }
  }
  await results.try({ node, what: 'upgrade', listener: 'auto, then node', database: SQLITE }, async () => {
    const before = await shop.addOneProduct()
    await shop.upgrade(next)
    const after = await shop.addOneProduct({ HTTP_LISTENER: 'node' })
    if (after !== before + 1) throw new Error(`There were ${before} products, and with one more there are ${after}`)
  })
  await results.try({ node, what: 'install drizzle-orm' }, () => shop.addDrizzle(next))
  for (const [database, env] of [
    [SQLITE, { SQLITE_PATH: 'data/migrated.db' }],
    [SERVERS, await servers.fresh()],
  ] as const) {
    await results.try({ node, what: 'migrate, db types', database }, () => shop.migrate(env))
    await results.try({ node, what: 'start, Drizzle', listener: 'auto', database }, () => shop.raisePrices(env))
  }
}

async function main(): Promise<void> {
  if (values.provide) return void (await Promise.all(lines.map(NodeProgram.provide)))
  const work = mkdtempSync(join(tmpdir(), 'heddle-nodes-'))
  endings.push(() => rmSync(work, { recursive: true, force: true }))
  const packing = packOne()
  packing.then(
    ({ end }) => endings.push(end),
    () => {},
  )
  await (values.short ? runShort : runLong)(work, packing)
}

main()
  .catch((error) => {
    console.error(error)
    process.exitCode = 1
  })
  .finally(async () => {
    for (const end of endings.reverse()) await end()
    if (!values.provide) results.print()
    if (results.hasFailed) process.exitCode = 1
  })
