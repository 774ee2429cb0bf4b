import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'

const COUNTS_PROCESSES = fileURLToPath(new URL('count-processes.cjs', import.meta.url))
const DEEP = `export const deep = ${'['.repeat(20_000)}${']'.repeat(20_000)}\n`

test('sources are parsed in a process of their own, once per change, and a file that ends it is named', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-outside-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const domain = join(folder, 'domains', 'deep')
  mkdirSync(join(domain, 'plugins'), { recursive: true })
  const write = (text: string) => writeFileSync(join(domain, 'data.ts'), text)
  const log = join(folder, 'processes')
  writeFileSync(log, '')
  const heddle = await startHeddle(t, {
    domains: [join(folder, 'domains'), SHIPPED],
    lanes: 1,
    env: { NODE_OPTIONS: `--require ${COUNTS_PROCESSES}`, PROCESS_LOG: log },
  })
  /** Processes that have parsed. */
  const parsers = () =>
    readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => line.includes('source-process')).length
  const faults = async () =>
    ((await heddle.json('/system/lint')).body.findings as { rule: string; file: string; message: string }[]).filter(
      ({ rule }) => rule === 'parse',
    )

  assert.deepEqual(await faults(), [])
  assert.equal(parsers(), 1)
  const { topology } = (await heddle.json('/system/events')).body
  assert.ok('user.created' in topology, 'events of the sources are found')
  assert.equal(parsers(), 1, 'the result is kept')

  write(DEEP)
  const [fault, ...others] = await faults()
  assert.deepEqual(others, [])
  assert.match(fault!.file, /deep\/data\.ts$/)
  assert.match(fault!.message, /the parser ran in a process of its own, and it ended with SIG/)
  assert.equal(parsers(), 3, 'the other files are read without it')
  assert.ok('user.created' in (await heddle.json('/system/events')).body.topology)
  await faults()
  assert.equal(parsers(), 3, 'the failure is kept')
  assert.equal(heddle.process.exitCode, null)

  write('export const deep = []\n')
  assert.deepEqual(await faults(), [])
  assert.equal(parsers(), 4)
})
