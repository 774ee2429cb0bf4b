import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { folderOf } from '../../support/folder.ts'

const SWITCH = fileURLToPath(new URL('../../../src/guardian/switch.cjs', import.meta.url))

test('what is started is in production, unless the environment or .env says otherwise', async (t) => {
  const cwd = await folderOf(t, {})
  const modeWith = (mode: string): string => {
    const script = `console.log(require(${JSON.stringify(SWITCH)}).mode())`
    return spawnSync(process.execPath, ['-e', script], { cwd, env: { NODE_ENV: mode } })
      .stdout.toString()
      .trim()
  }
  assert.equal(modeWith(''), 'production')
  assert.equal(modeWith('development'), 'development')
  await writeFile(join(cwd, '.env'), 'NODE_ENV=staging\n')
  assert.deepEqual([modeWith(''), modeWith('development')], ['staging', 'development'])
})
