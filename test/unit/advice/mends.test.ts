import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { DbError, HeddleError } from '../../../src/core/errors/catalogue.ts'
import { type FixFacts, fixOf } from '../../../src/runtime/advice/fixes.ts'
import { folderOf } from '../../support/folder.ts'

const METHODS: Record<string, string[]> = {
  db: ['query', 'queryOne', 'execute', 'transaction'],
  http: ['before', 'addEndpoint', 'addStream'],
  event_bus: ['publish', 'subscribe', 'request'],
  logger: ['debug', 'info', 'warning', 'error'],
}

const facts = (domainsDirs: string[] = []): FixFacts => ({
  domainsDirs,
  tools: () => Object.keys(METHODS),
  methodsOf: (tool) => METHODS[tool] ?? [],
  fileOf: () => undefined,
})

/** What V8 throws, with its own words. */
function thrownBy(work: () => unknown): unknown {
  try {
    work()
  } catch (thrown) {
    return thrown
  }
  return assert.fail('nothing was thrown')
}

// biome-ignore lint/suspicious/noExplicitAny: beginners' code has no types
type Any = any

test('a beginner’s mistake has a mend, by what V8 says of it', () => {
  const nothing: Any = undefined
  const things: Any = { http: { addEndpoint() {} }, db: { query() {} }, event_bus: {}, logger: {}, res: {}, round: {} }
  const { http, db, event_bus, logger, res } = things
  things.round.itself = things.round
  const cases: [work: () => unknown, mend: RegExp | undefined][] = [
    [() => http.head('/x'), /^write http\.addEndpoint\('\/path', 'HEAD', handler\)\.$/],
    [() => db.run('x'), /^did you mean db\.execute\? db has query, queryOne, execute, transaction\.$/],
    [() => db.qeury('x'), /^did you mean db\.query\?/],
    [() => event_bus.emit('x'), /^did you mean event_bus\.publish\?/],
    [() => logger.log('x'), /^did you mean logger\.info\?/],
    [() => res.json({}), /^return the answer: return \{ success: true, data \}/],
    [() => things.round.none(), undefined],
    [() => JSON.stringify(things.round), /^JSON cannot hold what contains itself/],
    [() => nothing.foo, undefined],
    [() => new Function('require("x")')(), /^write import … from '…'/],
    [() => new Function('return HttpError')(), /^import \{ HttpError \} from 'heddle'\.$/],
    [
      () => new Function('return db')(),
      /^take it from the tools: plugin\(\(\{ db \}\) => …\), or constructor\(\{ db \}: Tools\)/,
    ],
    [() => new Function('return z.object({})')(), /^import \{ z \} from 'zod'\.$/],
    [() => new Function('return own')(), undefined],
  ]
  for (const [work, mend] of cases) {
    const thrown = thrownBy(work)
    const text = fixOf(thrown, { ...facts(), place: undefined })
    if (mend === undefined) assert.equal(text, undefined, String(thrown))
    else assert.match(text ?? `no mend: ${thrown}`, mend)
  }
})

test('what is thrown and no Error is told to be one', () => {
  const mend = (thrown: unknown) => fixOf(thrown, { ...facts(), place: undefined })
  assert.match(mend('out of paper')!, /throw new Error\(…\)/)
  assert.match(mend({ status: 404, message: 'gone' })!, /^throw new HttpError\(404, "gone"\)/)
  assert.match(mend(undefined)!, /throw new Error/)
})

test('a value that was not awaited is found in the lines above', async (t) => {
  const folder = await folderOf(t, {
    'plugin.ts': [
      'const rows = this.#db.query<Row>(`SELECT 1`)',
      'const waited = await this.#db.query(`SELECT 1`)',
      'for (const row of rows) row',
      'waited.map((row) => row)',
      'return req.body.name',
    ].join('\n'),
  })
  const at = (line: number) => ({ ...facts(), place: { file: join(folder, 'plugin.ts'), line, column: 1 } })
  assert.equal(
    fixOf(new TypeError('rows is not iterable'), at(3)),
    'rows is a promise: write rows = await this.#db.query(…).',
  )
  assert.equal(
    fixOf(new TypeError('rows.map is not a function'), at(4)),
    'rows is a promise: write rows = await this.#db.query(…).',
  )
  assert.equal(fixOf(new TypeError('waited.map is not a function'), at(4)), undefined)
  assert.match(
    fixOf(new TypeError("Cannot read properties of undefined (reading 'name')"), at(5))!,
    /^the first argument of a handler is its data/,
  )
})

test('errors of the database have mends, and a missing table names the migration that makes it', async (t) => {
  const domains = await folderOf(t, {
    'shop/migrations/001_orders.sql': 'CREATE TABLE IF NOT EXISTS orders (id TEXT);',
    'shop/migrations/001_orders.down.sql': 'DROP TABLE orders;',
    'shop/migrations/002_drafted.sql': '-- heddle: draft\nCREATE TABLE drafted (id TEXT);',
  })
  const mend = (message: string, kind: 'syntax' | 'unique_violation' = 'syntax') =>
    fixOf(new DbError(kind, message), { ...facts([domains]), place: undefined })
  for (const message of ['no such table: orders', 'no such table: main.orders', 'relation "orders" does not exist'])
    assert.match(
      mend(message)!,
      /^shop\/001_orders makes the table orders and is not applied to this database: .*npm run migrate/,
    )
  assert.match(mend('relation "sales" does not exist')!, /^no applied migration makes the table sales: write one/)
  assert.match(mend('no such table: drafted')!, /: remove its line `-- heddle: draft`, or apply it/)
  for (const own of [
    'no such table: heddle_event',
    'relation "heddle_event" does not exist',
    'no such table: _migrations',
  ])
    assert.match(mend(own)!, /^the runtime makes the table \w+ when it starts, .*start the process again$/)
  assert.match(mend('no such column: nmae')!, /^correct the name nmae, or add the column by a migration/)
  assert.match(mend('cannot insert multiple commands into a prepared statement')!, /^one statement a call/)
  assert.match(mend('UNIQUE constraint failed: orders.id', 'unique_violation')!, /throw new HttpError\(409, …\)$/)
  assert.equal(mend('near "FORM": syntax error'), undefined)
  const missing = new HeddleError('TOOL_MISSING', 'Missing tool: cache')
  assert.match(fixOf(missing, { ...facts(), place: undefined })!, /^Installed: db, event_bus, http, logger\.$/)
})
