import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Report } from '../../chaos/report.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { LOADER } from '../../support/loader.ts'

const RUN = fileURLToPath(new URL('../../chaos/run.ts', import.meta.url))

test('six seconds of chaos lose nothing', async (t) => {
  const directory = temporaryFolder(t)
  const json = join(directory, 'report.json')
  const child = spawn(
    process.execPath,
    [...LOADER, RUN, '--seconds', '6', '--gap', '1', '--seed', '15', '--json', json],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  t.after(() => child.kill())
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  const [code] = await once(child, 'close')
  assert.equal(code, 0, output)

  const { lanesDied, struck, verdict } = JSON.parse(await readFile(json, 'utf8')) as Report
  // On a busy machine a lane may not be back in time for the next fault, which is refused then.
  const refused = struck.filter(({ outcome }) => outcome === 503).length
  assert.ok(lanesDied >= 1 && lanesDied + refused >= 2, output)
  assert.ok(verdict.rows > 0 && verdict.acknowledged > 0 && verdict.trees > 0, output)
})
