import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { MadeShop, serversEnv } from '../../shop/made-shop.ts'
import { freePort } from '../../support/port.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { processTree } from '../../support/servers/process-tree.ts'
import { redisServer } from '../../support/servers/redis.ts'
import { until } from '../../support/until.ts'
import { pairs } from '../deploy/manifests.ts'
import { linksOf, trackedPages } from '../docs/pages.ts'
import { ROOT } from '../docs/sources.ts'
import { stepsOf } from '../guides/page.ts'
import { end, type Installed, install, run, type Served, serve, sharedPackage } from './packed.ts'

/** What the guide tells everybody to do who has installed the next version, as arguments of `heddle`. */
function upgradeCommands(): string[][] {
  const page = readFileSync(join(ROOT, 'src/guides/upgrading.md'), 'utf8')
  const texts = stepsOf(page).flatMap((step) => (step.kind === 'command' ? [step.command.text] : []))
  const commands = texts.flatMap((text) => /^npm (?:run )?((?:test|check|migrate)\b.*)$/.exec(text)?.[1] ?? [])
  assert.deepEqual(commands.slice(0, 2), ['check', 'test'])
  return commands.map((command) => command.split(' ').filter((word) => word !== '--'))
}

const WITH_KYSELY = `import { Plugin, type Tools } from 'heddle'
import { keysetPage, kysely } from 'heddle/kysely'
import type { Kysely } from 'kysely'

export default class KeepOrders extends Plugin {
  constructor({ db, http }: Tools) {
    super()
    const builder = kysely<{ orders: { id: string; item: string } }>(db)
    http.addEndpoint('/kept', 'POST', async () => {
      await builder.transaction().execute(async (trx) => {
        await trx.insertInto('orders').values({ id: '1', item: 'heddle' }).execute()
        await trx.publish('order.kept', { id: '1' })
      })
      const rows = await builder.selectFrom('orders').select('item').execute()
      const page = await keysetPage(builder, { rows: builder.selectFrom('orders').selectAll(), orderBy: ['id'], limit: 9 })
      const plain: Kysely<{ orders: { id: string; item: string } }> = builder
      return { items: rows.map(({ item }) => item.toUpperCase()), page: page.rows.map(({ id }) => id), plain: typeof plain }
    })
  }
}
`
const WITH_DRIZZLE = `import { eq } from 'drizzle-orm'
import { integer, pgTable, text as pgText } from 'drizzle-orm/pg-core'
import { sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { Plugin, type Tools } from 'heddle'
import { drizzlePg, drizzleSqlite } from 'heddle/drizzle'

const orders = sqliteTable('orders', { id: text('id').primaryKey(), item: text('item').notNull() })
const onPostgres = pgTable('orders', { id: pgText('id').primaryKey(), count: integer('count').notNull() })

export default class KeepOrders extends Plugin {
  constructor({ db, http }: Tools) {
    super()
    const orm = drizzleSqlite(db, { schema: { orders } })
    http.addEndpoint('/kept', 'POST', async () => {
      await orm.transaction(async (tx) => {
        await tx.insert(orders).values({ id: '1', item: 'heddle' })
        await tx.publish('order.kept', { id: '1' })
      })
      const rows = await orm.select().from(orders).where(eq(orders.id, '1'))
      return { items: rows.map(({ item }) => item.toUpperCase()), found: await orm.query.orders.findFirst() }
    })
    const other = drizzlePg(db)
    http.addEndpoint('/counted', 'GET', async () => {
      const rows = await other.select().from(onPostgres)
      return { count: rows.reduce((sum, { count }) => sum + count, 0) }
    })
  }
}
`

let packed: Installed
before(async () => {
  packed = await sharedPackage()
})

describe('the package and an application that is made with it', () => {
  let app: string
  const heddle = (...args: string[]) => run(join(app, 'node_modules/.bin/heddle'), args, app)
  const started: Served[] = []
  const start = async (...command: string[]): Promise<Served> => {
    const served = await serve(app, command)
    started.push(served)
    return served
  }

  before(async () => {
    app = join(packed.folder, 'my-app')
    const program = join(packed.current, 'node_modules/.bin/heddle')
    const { code, output } = await run(program, ['create', 'my-app', '--with', 'checks'], packed.folder)
    assert.equal(code, 0, output)
    await install(app, packed.current)
  })
  after(() => started.forEach(end))

  test('has code with types and maps, the system domain and its libraries, and nothing of tests and examples', async () => {
    const { output } = await run('tar', ['-tzf', packed.first], packed.folder)
    const files = output.trim().split('\n')
    for (const file of [
      'package.json',
      'CHANGELOG.md',
      'dist/src/index.js',
      'dist/source-maps.jsonl.br',
      'dist/src/index.d.ts',
      'dist/src/devtools/testing/index.d.ts',
      'dist/workers/lane.js',
      'dist/src/extras/redis-state/increment-n.lua',
      'dist/domains/system/plugins/show-status.ts',
      'dist/domains/system/libraries/lit-html.js',
      'dist/deploy/compose.yaml',
      'dist/src/devtools/scaffolding/templates/application/.gitignore.tpl',
    ]) {
      assert.ok(files.includes(`package/${file}`), file)
    }
    const guides = trackedPages().filter(({ path }) => path.startsWith('src/guides/'))
    const missing = guides.flatMap(linksOf).filter(({ file }) => !files.includes(`package/dist/${file}`))
    assert.deepEqual(missing, [], 'the guides are there, and what they lead to')
    assert.deepEqual(
      files.filter(
        (file) =>
          !/\.(?:md|tpl)$/.test(file) && /\/(?:test|bench|users|examples)\/(?!.*\.md$)|\.test\.|\.snippets/.test(file),
      ),
      [],
    )
  })

  test('what is scaffolded in the application is started by its editor, and its checks know the types of its events', async () => {
    for (const what of [
      ['domain', 'orders'],
      ['plugin', 'orders/cancel-order'],
      ['tool', 's3'],
    ]) {
      const { code, output } = await heddle('new', ...what)
      assert.equal(code, 0, output)
    }
    const launches = JSON.parse(readFileSync(join(app, '.vscode/launch.json'), 'utf8')).configurations
    for (const path of JSON.stringify(launches).matchAll(/\$\{workspaceFolder\}(\/[^"]+)/g)) {
      assert.ok(existsSync(app + path[1]), `an editor starts ${path[1]}`)
    }

    const events = join(app, 'domains/orders/events.ts')
    const text = readFileSync(events, 'utf8')
    writeFileSync(events, text.replace('name: z.string()', 'name: z.number()'))
    const refused = await heddle('check')
    writeFileSync(events, text)
    assert.equal(refused.code, 1)
    assert.match(refused.output, /add-order\.ts.*: error TS/, 'the types of events reach the plugins')
  })

  test('an application with Kysely and Drizzle has the types of its rows from both', async () => {
    const other = join(packed.folder, 'with-builders')
    const program = join(packed.current, 'node_modules/.bin/heddle')
    assert.equal((await run(program, ['create', 'with-builders', '--with', 'checks'], packed.folder)).code, 0)
    await install(other, packed.current)
    const plugins = { kysely: WITH_KYSELY, drizzle: WITH_DRIZZLE }
    const check = (change: (text: string) => string) => {
      for (const [library, text] of Object.entries(plugins))
        writeFileSync(join(other, `domains/hello/plugins/keep-by-${library}.ts`), change(text))
      return run(process.execPath, [join(other, 'node_modules/typescript/bin/tsc'), '--noEmit'], other)
    }
    const typed = await check((text) => text)
    assert.equal(typed.code, 0, typed.output)
    const refused = await check((text) => text.replace("item: 'heddle'", 'item: 7'))
    for (const library of Object.keys(plugins))
      assert.match(refused.output, new RegExp(`keep-by-${library}\\.ts.*error TS`))
    assert.notEqual(refused.code, 0)
  })

  test('it is served under the guardian, from the package, goes on with the next version of it, and passes its checks and tests there, also what is scaffolded', async () => {
    const served = await start('start')
    const get = async (path: string) => {
      const response = await fetch(served.url + path)
      // biome-ignore lint/suspicious/noExplicitAny: a test asserts what it is
      return { status: response.status, body: (await response.json()) as any }
    }
    assert.deepEqual(await get('/hello/world'), { status: 200, body: { success: true, data: { hello: 'world' } } })
    assert.equal((await get('/hello/nobody')).status, 404)
    const { plugins } = (await get('/system/status')).body
    assert.equal(plugins['hello.SayHello'].status, 'OK')
    assert.equal(plugins['system.ShowStatus'].status, 'OK')
    const addFirst = async (url: string) => {
      const headers = { 'content-type': 'application/json' }
      return (await fetch(`${url}/orders`, { method: 'POST', headers, body: '{"name":"first"}' })).status
    }
    assert.equal(await addFirst(served.url), 201)

    const [guardian, runtime] = processTree(served.process.pid!)
    assert.equal(guardian, served.process.pid)
    process.kill(runtime!, 'SIGKILL')
    await until(() => served.output().match(/Serving on/g)!.length === 2, 'the next runtime', 60_000)
    assert.equal(await served.stop(), 0)

    await install(app, packed.next)
    assert.equal((await heddle('--version')).output.trim(), '99.0.0')
    for (const command of upgradeCommands()) {
      const { code, output } = await heddle(...command)
      assert.equal(code, 0, `${command}: ${output}`)
      if (command[0] === 'test') assert.match(output, /pass 6/)
    }
    const upgraded = await start('start')
    assert.equal(await addFirst(upgraded.url), 409, 'the rows are there')
    assert.equal(await upgraded.stop(), 0)
  })

  test('what its Dockerfile starts is healthy under any host name, and ends with SIGTERM', async (t) => {
    const dockerfile = readFileSync(join(app, 'Dockerfile'), 'utf8').replaceAll('\\\n', '')
    const rest = (name: string): string => new RegExp(`^${name} (.*)$`, 'm').exec(dockerfile)![1]!
    const env = pairs(rest('ENV'))
    for (const [, copied] of dockerfile.matchAll(/^COPY (?!--from)(\S+) /gm)) {
      assert.ok(copied === 'package.json' || copied === '.', copied)
    }
    const own = {
      HTTP_HOST: '127.0.0.1',
      HTTP_PORT: '0',
      SYSTEM_PORT: String(await freePort()),
      HTTP_ALLOWED_HOSTS: 'shop.example',
      AUTH_SECRET_KEY: 'x'.repeat(64),
      SQLITE_PATH: join(packed.folder, 'volume/service.db'),
    }
    mkdirSync(join(packed.folder, 'volume'), { recursive: true })
    const [, command, ...args] = JSON.parse(rest('ENTRYPOINT')) as string[]
    assert.equal(command, 'node_modules/heddle/dist/src/heddle.cjs')
    const served = await serve(app, args, { ...env, ...own })
    t.after(() => end(served))
    const [node, ...check] = JSON.parse(rest('HEALTHCHECK').replace(/^.*? CMD /, '')) as string[]
    assert.equal(node, 'node')
    await until(
      async () => (await run(process.execPath, check, app, { ...env, ...own })).code === 0,
      'a healthy container',
      60_000,
    )
    assert.equal((await fetch(`${served.url}/hello/world`)).status, 421, 'the public has to say the name')
    assert.equal(await served.stop(), 0)
  })

  test('package.json chooses an implementation, and the package stays as it is', async () => {
    const manifest = () => JSON.parse(readFileSync(join(app, 'package.json'), 'utf8'))
    const used = await heddle('tools', 'use', 'redis-state')
    assert.equal(used.code, 0, used.output)
    assert.deepEqual(manifest().heddle, { tools: { state: 'redis-state' } })
    const listed = await heddle('tools')
    assert.match(listed.output, /^state +memory-state +parked$/m)
    assert.match(listed.output, /^state +redis-state +active$/m)
    assert.match(listed.output, /^s3 +s3 +active$/m)
    writeFileSync(
      join(app, 'package.json'),
      JSON.stringify({ ...manifest(), heddle: { tools: { db: 'redis-state' } } }),
    )
    const wrong = await heddle('start')
    assert.notEqual(wrong.code, 0)
    assert.match(wrong.output, /redis-state is an implementation of state, not of db/)
    writeFileSync(join(app, 'package.json'), JSON.stringify({ ...manifest(), heddle: undefined }))
  })

  test('heddle refuses what it does not know with 2, and a folder that is not empty with 1', async () => {
    const cases: [command: string, said: RegExp, code?: number][] = [
      ['strat', /There is no command strat: was start meant\?[\s\S]*Usage: heddle/],
      [`create ${app}`, /is not empty/, 1],
      ['start --boot-tol db', /was --boot-tool meant\?/],
      ['dev --boot-tol=db', /was --boot-tool meant\?/],
      ['lint --jsn', /was --json meant\?/],
      ['new plugn hello/say-it', /was plugin meant\?/],
      ['--hlp', /was --help meant\?/],
      ...['create', 'test --wacht', 'check all', 'migrate now', 'tools remove'].map((command): [string, RegExp] => [
        command,
        /./,
      ]),
    ]
    for (const [command, said, wanted = 2] of cases) {
      const { code, output } = await heddle(...command.split(' '))
      assert.equal(code, wanted, `${command}: ${output}`)
      assert.match(output, said)
    }
  })
})

describe('the shop, an application with a bit of everything', () => {
  let shop: MadeShop

  before(async () => {
    const within = join(packed.folder, 'of-the-shop')
    mkdirSync(within)
    shop = await MadeShop.make(within, packed.current, { install, env: {} })
  })

  test('passes its checks', () => shop.check())

  test('passes its tests on the listener that is chosen here, and SQLite', () => shop.test())

  test('passes its tests on node:http, PostgreSQL and Redis', async (t) => {
    const [postgres, redis] = [await postgresServer(t), await redisServer(t)]
    if (postgres === null || redis === null) return
    await shop.test({ HTTP_LISTENER: 'node', ...serversEnv(postgres, redis) })
  })

  test('migrates, goes back, seeds and has the types of its tables, on PostgreSQL', async (t) => {
    const postgres = await postgresServer(t)
    if (postgres === null) return
    const { user, password, host, port, database } = postgres
    const DATABASE_URL = `postgres://${user}:${encodeURIComponent(password)}@${host}:${port}/${database}`
    await shop.migrate({ TOOLS: 'postgres', DATABASE_URL })
  })
})
