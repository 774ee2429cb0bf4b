import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { packedManifest } from '../../../deploy/package/manifest.mjs'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** What a start says on another Node, and its exit code. It would fail elsewhere behind the check. */
function startOn(version: string, ...args: string[]) {
  const pretend = `Object.defineProperty(process.versions, 'node', { value: '${version}' })`
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, ...args],
    { cwd: ROOT, encoding: 'utf8', env: { ...process.env, HTTP_PORT: 'none' } },
  )
  return { status, stdout, text: stderr.trim() }
}

test('a Node that is too old is told in one sentence, with exit code 78', () => {
  for (const version of ['18.20.8', '20.20.2', '21.7.3', '22.14.0', '23.11.0']) {
    const { status, text } = startOn(version, 'src/guardian.cjs')
    assert.equal(status, 78)
    assert.match(
      text,
      new RegExp(`^heddle needs Node 22\\.15 or later, 24 or 26: this is Node ${version}\\. Start it by npm .*$`),
    )
  }
})

test('the sentence says what the packed package.json says', () => {
  const { engines } = packedManifest(JSON.parse(readFileSync(`${ROOT}/package.json`, 'utf8')))
  assert.deepEqual(engines, { node: '^22.15.0 || >=24.0.0' })
})

test('each Node of today passes', () => {
  for (const version of ['22.15.0', '24.0.0', '26.1.0']) {
    const { stdout } = startOn(version, '--require', './src/preload.cjs', '--eval', 'console.log("passed")')
    assert.equal(stdout, 'passed\n')
  }
})
