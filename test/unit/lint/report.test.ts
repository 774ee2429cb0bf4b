import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { fixture, lintArchitecture, plugin } from '../../support/lint-fixture.ts'

test('the report counts what it checked, sorts its findings, and names files from the working directory', async (t) => {
  const { lint, domains } = await fixture(t, {
    'a/events.ts': "import { z } from 'zod'\nexport default { 'a.done': z.object({}) }\n",
    'a/migrations/001_a.sql': 'CREATE TABLE a (id TEXT);\n',
    'a/plugins/a.ts': plugin('A', "this.#http.addEndpoint('/a', 'GET', this.x); this.#bus.publish('a.done', {})"),
    'b/plugins/b.ts': plugin('B', "this.#http.addEndpoint('/a', 'GET', this.x)"),
    'a/plugins/z.ts': `import '../../b/plugins/b.ts'\n${plugin('Z', "this.#bus.publish('z', {})")}`,
  })
  const { ok, findings, checked } = await lint()
  assert.equal(ok, false)
  assert.deepEqual(checked, { plugins: 3, migrations: 1, routes: 2, events: 2 })
  assert.deepEqual(
    findings.map(({ file, line, rule }) => [path.resolve(file), line, rule]),
    [
      [path.join(domains, 'a/plugins/z.ts'), 1, 'domain-isolation'],
      [path.join(domains, 'a/plugins/z.ts'), 10, 'event-contract'],
      [path.join(domains, 'b/plugins/b.ts'), 9, 'route-collision'],
    ],
  )
})

test('a folder of domains that does not exist is an error, an empty one is none', async (t) => {
  const { domains, tools, root } = await fixture(t, {})
  assert.equal((await lintArchitecture([domains], tools)).ok, true)
  const { ok, findings } = await lintArchitecture([path.join(root, 'typo')], tools)
  assert.equal(ok, false)
  assert.equal(findings[0]?.rule, 'parse')
  assert.match(findings[0]?.message ?? '', /^the folder cannot be read: ENOENT/)
})

test('a tree of 300 plugins is read in slices, and files that no parser can take are findings', async (t) => {
  const files: Record<string, string> = {
    'd0/plugins/binary.ts': '\u0000\u0001\ud800',
    'd0/plugins/deep.ts': `export default ${'['.repeat(5000)}${']'.repeat(5000)}`,
    'd0/plugins/empty.ts': '',
    'd0/migrations/999_deep.sql': `SELECT ${'('.repeat(50_000)}1`,
  }
  for (let n = 0; n < 300; n++) {
    const body = Array.from({ length: 8 }, (_, at) => [
      `this.#http.addEndpoint('/p${n}/${at}/:id', 'GET', this.x)`,
      `await this.#db.query('SELECT a.id, b.n FROM t${n} a JOIN t${n} b ON a.id = b.id WHERE a.id IN (SELECT id FROM t${n})')`,
      `await this.#bus.publish('d${n % 30}.e', { id: 'x', inner: { n: ${at} } })`,
    ])
    files[`d${n % 30}/plugins/p${n}.ts`] = plugin(`P${n}`, body.flat().join('\n'))
    files[`d${n % 30}/migrations/${String(Math.floor(n / 30) + 1).padStart(3, '0')}_t${n}.sql`] =
      `CREATE TABLE t${n} (id TEXT PRIMARY KEY, n INTEGER);\nCREATE INDEX i${n} ON t${n} (n);\n`
  }
  for (let n = 0; n < 30; n++) {
    const schema = 'z.object({ id: z.string(), inner: z.object({ n: z.number() }) })'
    files[`d${n}/events.ts`] = `import { z } from 'zod'\nexport default { 'd${n}.e': ${schema} }\n`
  }
  const { lint } = await fixture(t, files)
  let turns = 0
  let isOver = false
  const count = () => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  const startedMs = performance.now()
  const { findings, checked } = await lint()
  isOver = true
  t.diagnostic(`${Math.round(performance.now() - startedMs)} ms`)
  assert.deepEqual([checked.plugins, checked.migrations, checked.routes], [302, 301, 2400])
  assert.deepEqual(
    findings.map(({ rule, file }) => `${rule} ${path.basename(file)}`),
    ['parse binary.ts', 'parse deep.ts'],
  )
  assert.ok(turns > 600, `the loop turned ${turns} times: at least once for each file`)
})
