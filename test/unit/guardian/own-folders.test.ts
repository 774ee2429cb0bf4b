import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { temporaryFolder } from '../../support/folder.ts'

const require = createRequire(import.meta.url)
const { FlightFolder, writeCrashReport } = require('../../../src/guardian/crash-report.cjs')

function folder(t: TestContext): string {
  const path = temporaryFolder(t)
  return path
}

test('of the reports the oldest go, and nothing else whose name begins alike', (t) => {
  const path = folder(t)
  for (const name of ['crash-course', 'crash-2020', 'crash-2020-01-01']) mkdirSync(join(path, name))
  const flight = { copyTo: () => {} }
  for (let n = 0; n < 4; n++)
    writeCrashReport(path, 2, { flight, stderr: '', startedMs: 0, number: n, signal: 'SIGKILL', code: null })
  const names = readdirSync(path)
  assert.deepEqual(names.filter((name) => /^crash-(?:course|2020)/.test(name)).sort(), [
    'crash-2020',
    'crash-2020-01-01',
    'crash-course',
  ])
  assert.equal(names.length, 3 + 2)
})

test('the flight folder of a guardian of another container stays, and that of one that is gone is removed', (t) => {
  const own = new FlightFolder()
  t.after(() => own.remove())
  const [, parent, prefix] = /^(.*)\/(heddle-flight-\d*-)\d+-\w+$/.exec(own.path) ?? []
  assert.ok(parent !== undefined && prefix !== undefined, own.path)
  // No process has this id.
  const gone = join(parent, `${prefix}4194305-abcdef`)
  const elsewhere = join(parent, 'heddle-flight-1-4194305-abcdef')
  t.after(() => rmSync(elsewhere, { recursive: true, force: true }))
  for (const path of [gone, elsewhere]) {
    mkdirSync(path)
    writeFileSync(join(path, 'names.json'), '{}')
  }
  new FlightFolder().remove()
  assert.deepEqual([existsSync(gone), existsSync(elsewhere), existsSync(own.path)], [false, true, true])
})
