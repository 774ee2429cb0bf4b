import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Site } from '../../packages/service.ts'
import { type Outcome, tryPackage } from '../../packages/trial.ts'
import { wrongsOf } from '../../packages/verdict.ts'
import { temporaryFolder } from '../../support/folder.ts'
import type { Owner } from '../../support/heddle.ts'

const folder = fileURLToPath(new URL('../../packages', import.meta.url))
const guardian = fileURLToPath(new URL('../../../src/guardian.cjs', import.meta.url))
const site: Site = { folder, node: process.execPath, start: [guardian], env: {}, heddle: '#heddle' }

const tryText = (t: Owner, text: string, rounds = 0): Promise<Outcome> =>
  tryPackage(site, text, join(temporaryFolder(t), 'log'), rounds)

test('a package whose native calls are under way when its lanes end passes', async (t) => {
  const outcome = await tryText(t, readFileSync(join(folder, 'things/bcrypt.ts'), 'utf8'), 1)
  assert.equal(outcome.ends, 8)
  assert.deepEqual(wrongsOf(outcome), [])
})

test('one that does not load, and one that leaves files, do not', async (t) => {
  const missing = await tryText(t, "import nothing from 'no-such-package'\n\nexport default () => nothing")
  assert.match(wrongsOf(missing)[0]!, /no-such-package/)
  const leaves = `import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'

setInterval(() => mkdtempSync(tmpdir() + '/left-'), 50)

export default () => () => 1`
  assert.ok(wrongsOf(await tryText(t, leaves)).some((wrong) => /temporary files left, as left-/.test(wrong)))
})
