import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const WITH_TSX = ['--require', './src/preload.cjs', '--import', 'tsx', 'src/heddle.cjs', 'tools']
const scripts = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).scripts as Record<string, string>

test('sources that tsx has compiled are not executed where somebody else could have put them', (t) => {
  const temporary = mkdtempSync(join(tmpdir(), 'heddle-transpiled-'))
  t.after(() => rmSync(temporary, { recursive: true }))
  const cache = join(temporary, `tsx-${process.geteuid!()}`)
  const listTools = () => {
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: temporary }
    const { stdout, stderr, status } = spawnSync(process.execPath, WITH_TSX, { cwd: ROOT, env, encoding: 'utf8' })
    assert.equal(status, 0, stderr)
    return { stdout, stderr }
  }

  const clean = listTools()
  assert.match(clean.stdout, /sqlite/)
  assert.equal(statSync(cache).mode & 0o777, 0o700, 'the folder is its user’s alone')
  const entries = readdirSync(cache)
  assert.ok(entries.length > 0, 'what was compiled is kept')

  for (const name of entries) {
    const file = join(cache, name)
    const entry = JSON.parse(readFileSync(file, 'utf8')) as { code: string }
    writeFileSync(file, JSON.stringify({ ...entry, code: `process._rawDebug("planted");${entry.code}` }))
  }
  assert.match(listTools().stderr, /planted/, 'what lies in the folder is executed')

  // As if another user had made the folder: everybody may write there.
  chmodSync(cache, 0o777)
  const refused = listTools()
  assert.doesNotMatch(refused.stderr, /planted/)
  assert.match(refused.stderr, /Compiled sources are not kept.*others may write to/)
  assert.equal(refused.stdout, clean.stdout)

  // Nor is a folder trusted above which everybody may rename it.
  rmSync(cache, { recursive: true })
  mkdirSync(cache, { mode: 0o700 })
  chmodSync(temporary, 0o777)
  assert.match(listTools().stderr, /is writable by others, and not sticky/)
})

test('every command that runs TypeScript looks at that folder first', () => {
  for (const [name, command] of Object.entries(scripts)) {
    if (command.includes('tsx')) assert.match(command, /--require \.\/src\/preload\.cjs --import tsx/, name)
  }
})
