import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { INHERITED, run as runProgram } from '../../support/command.ts'
import { type Fixture, fixture, plugin } from '../../support/lint-fixture.ts'

const COLLIDING = {
  'a/plugins/a.ts': plugin('A', "this.#http.addEndpoint('/a', 'GET', this.x)"),
  'b/plugins/b.ts': plugin('B', "this.#http.addEndpoint('/a', 'GET', this.x)"),
}
const COLLISION = /^ {2}9 {2}error {2}route-collision {2}GET \/a of b\.B collides with GET \/a of a\.A/m

test('without a baseline every error fails, warnings do not, and each finding says how to fix it', async (t) => {
  const project = await fixture(t, COLLIDING)
  const failed = await run(project, [])
  assert.equal(failed.status, 1)
  const [file, , fix, blank, summary] = failed.output.trim().split('\n')
  assert.match(file ?? '', /\/b\/plugins\/b\.ts$/)
  assert.match(failed.output, COLLISION)
  assert.match(fix ?? '', /^ {4}fix: /)
  assert.equal(blank, '')
  assert.equal(summary, 'errors 1, warnings 0; checked: plugins 2, migrations 0, routes 2, events 0')

  await project.write('b/plugins/b.ts', plugin('B', "this.#bus.subscribe('nobody', this.x)"))
  const warned = await run(project, [])
  assert.equal(warned.status, 0)
  assert.match(warned.output, /^ {2}9 {2}warning {2}event-contract {2}/m)
  assert.ok(!warned.output.includes('\u{1b}'), 'no colours where there is no terminal')
})

test('a baseline accepts what is in it wherever it moves, fails for what is new, and only shrinks by itself', async (t) => {
  const project = await fixture(t, COLLIDING)
  const baseline = path.join(project.root, 'baseline.json')
  assert.equal((await run(project, ['--update-baseline'])).status, 1)
  assert.equal(existsSync(baseline), false, 'nothing is added without --accept')

  const accepted = await run(project, ['--accept'])
  assert.equal(accepted.status, 0)
  assert.match(accepted.errors, /^Warning: accepted in .*baseline\.json.*\n {2}.*b\/plugins\/b\.ts {2}route-collision/)

  // Both places of the finding move.
  await project.write('b/plugins/b.ts', `\n\n${COLLIDING['b/plugins/b.ts']}`)
  await project.write('a/plugins/a.ts', `\n${COLLIDING['a/plugins/a.ts']}`)
  const moved = await run(project, [])
  assert.equal(moved.status, 0, moved.output)
  assert.match(moved.output, /^errors 0, warnings 0, accepted 1; /)

  await project.write('c/plugins/c.ts', plugin('C', "this.#http.addEndpoint('/a', 'GET', this.x)"))
  const more = await run(project, ['--json'])
  assert.equal(more.status, 1)
  const report = JSON.parse(more.output)
  assert.deepEqual(
    [report.ok, report.findings.length, report.accepted.length, report.stale.length, report.checked.plugins],
    [false, 1, 1, 0, 3],
  )
  assert.match(report.findings[0].file, /c\/plugins\/c\.ts$/)
  await run(project, ['--update-baseline'])
  assert.doesNotMatch(await readFile(baseline, 'utf8'), /c\/plugins/)

  await project.write('b/plugins/b.ts', plugin('B', ''))
  await project.write('c/plugins/c.ts', plugin('C', ''))
  const stale = await run(project, [])
  assert.equal(stale.status, 1)
  assert.match(stale.output, /no longer found {2}.*b\/plugins\/b\.ts {2}route-collision/)
  assert.match(stale.output, /fix: npm run lint:architecture -- --update-baseline/)
  assert.equal((await run(project, ['--update-baseline'])).status, 0)
  assert.deepEqual(JSON.parse(await readFile(baseline, 'utf8')), { accepted: [] })
})

test('a file that does not parse cannot be accepted, and a baseline or an option that cannot be read is refused', async (t) => {
  const project = await fixture(t, { 'a/plugins/broken.ts': 'export default class {\n  run( {\n' })
  assert.equal((await run(project, ['--accept'])).status, 1)
  assert.equal(existsSync(path.join(project.root, 'baseline.json')), false)
  const unknown = await run(project, ['--fix'])
  assert.equal(unknown.status, 2)
  assert.match(unknown.errors, /--fix[\s\S]*Usage: /)
  assert.equal((await run(project, ['--accept', '--update-baseline'])).status, 2)
  await writeFile(path.join(project.root, 'baseline.json'), '{"accepted":[{"rule":"parse"}]}')
  const unreadable = await run(project, [])
  assert.equal(unreadable.status, 1)
  assert.match(unreadable.errors, /baseline\.json cannot be read: entry 1 of 'accepted'/)
})

async function run({ domains, tools, root }: Fixture, options: readonly string[]) {
  const command = path.resolve(import.meta.dirname, '../../../src/heddle.cjs')
  const args = [command, 'lint', '--baseline', path.join(root, 'baseline.json'), ...options]
  const env = { ...INHERITED, DOMAINS_DIR: domains, TOOLS_DIR: tools }
  const { code, stdout, stderr } = await runProgram(process.execPath, args, process.cwd(), env)
  return { status: code, output: stdout, errors: stderr }
}
