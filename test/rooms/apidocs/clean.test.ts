import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'

const run = promisify(execFile)
const SHOP = fileURLToPath(new URL('../../shop/application/domains', import.meta.url))
const SPECTRAL = '@stoplight/spectral-cli@6.16.1'
const INSTALL_MS = 240_000

/**
 * The linter's program, from npm: with its 240 packages it is no part of a normal install. Kept between runs. Null where npm cannot have it.
 */
async function spectral(t: TestContext): Promise<string | null> {
  const folder = join(tmpdir(), `heddle-test-${SPECTRAL.replaceAll(/[^\w.]+/g, '-')}-${process.getuid?.() ?? 0}`)
  const program = join(folder, 'node_modules/@stoplight/spectral-cli/dist/index.js')
  if (existsSync(program)) return program
  // Whole or not at all: another run may look for it meanwhile.
  const fresh = await mkdtemp(join(tmpdir(), 'heddle-test-install-'))
  try {
    const options = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', fresh]
    await run('npm', ['install', ...options, SPECTRAL], { cwd: fresh, timeout: INSTALL_MS })
    await rm(folder, { recursive: true, force: true })
    await rename(fresh, folder)
  } catch (error) {
    await rm(fresh, { recursive: true, force: true })
    t.skip(`npm does not install ${SPECTRAL}: ${(error as Error).message.slice(0, 200)}`)
    return null
  }
  return program
}

for (const [name, domains] of [
  ['shipped domains', SHIPPED],
  ['shop', SHOP],
] as const) {
  test(`OpenAPI: spectral finds nothing in the document of the ${name}`, { timeout: 360_000 }, async (t) => {
    const program = await spectral(t)
    if (program === null) return
    const folder = await folderOf(t, { 'rules.yaml': 'extends: ["spectral:oas"]\n' })
    const env = { SQLITE_PATH: join(folder, 'lint.db'), SYSTEM_DOMAIN: 'true' }
    const heddle = await startHeddle(t, { domains: [domains], lanes: 1, env })
    const lint = async (document: object): Promise<object[]> => {
      await writeFile(join(folder, 'openapi.json'), JSON.stringify(document))
      const args = [
        'lint',
        'openapi.json',
        '--ruleset',
        'rules.yaml',
        '--format',
        'json',
        '--quiet',
        '--fail-severity',
        'hint',
      ]
      const { stdout } = await run(process.execPath, [program, ...args], { cwd: folder }).catch((failed) => failed)
      return JSON.parse(stdout)
    }
    const { body } = await heddle.json('/system/openapi.json')
    assert.deepEqual(await lint(body), [])
    // It does look.
    assert.notDeepEqual(await lint({ ...body, info: {}, tags: [] }), [])
  })
}
