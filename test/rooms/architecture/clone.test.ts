import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')

/** Sources of one compilation, from the root of the repository, without packages. */
function sourcesOf(project: string): string[] {
  const listed = execFileSync(process.execPath, [TSC, '-p', project, '--listFilesOnly'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  const paths = listed.split('\n').map((file) => relative(ROOT, file))
  return paths.filter((file) => file !== '' && !file.startsWith('node_modules/'))
}

test('the types of a domain in a clone are checked with the domains, and do not reach the tests of the runtime', (t) => {
  const domain = join(ROOT, 'domains', `.clone-${process.pid}`)
  const written = join(ROOT, 'test/app', `clone-${process.pid}.test.ts`)
  t.after(() => {
    rmSync(domain, { recursive: true, force: true })
    rmSync(written, { force: true })
  })
  mkdirSync(domain)
  const events = join(domain, 'events.ts')
  writeFileSync(
    events,
    "declare module '#heddle' { interface Events { 'order.placed': { total: number } } }\nexport {}\n",
  )
  writeFileSync(written, `import '${relative(join(ROOT, 'test/app'), events)}'\n`)
  const runtime = sourcesOf('.')
  assert.ok(runtime.includes('test/unit/events/contracts.test.ts'))
  assert.deepEqual(
    runtime.filter((file) => file.startsWith('test/app/') || /^domains\/(?!examples|system|users)/.test(file)),
    [],
  )
  const application = sourcesOf('domains')
  assert.ok(application.includes(relative(ROOT, written)) && application.includes('domains/users/events.ts'))
  assert.ok(application.includes(relative(ROOT, events)))
  assert.ok(!application.some((file) => /^test\/(?!app\/)/.test(file)))
})

test('no test starts the runtime with all of `domains/`, where a clone has domains of its own', () => {
  const tests = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  )
  const whole = /(?:URL\('(?:\.\.\/)+domains\/?'|ROOT, 'domains')/
  const found = tests.filter(
    (file) => file !== 'support/shipped-domains.ts' && file !== 'rooms/architecture/clone.test.ts',
  )
  assert.deepEqual(
    found.filter((file) => whole.test(readFileSync(join(ROOT, 'test', file), 'utf8'))),
    [],
  )
})
