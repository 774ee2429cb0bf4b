import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { packedManifest } from '../../deploy/package/manifest.mjs'
import { scaffoldApplication } from '../../src/devtools/scaffolding/application.ts'

const OWN = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))

test('an application that the repository makes on Node 20 asks for the SQLite driver of Node 20, and on newer ones for none', () => {
  const { files } = scaffoldApplication('/nowhere/my-app', 'my-app', 'my-app')
  const made = JSON.parse(files.find(({ path }) => path.endsWith('package.json'))!.text)
  const isOld = process.versions.node.startsWith('20.')
  const wanted = isOld ? { 'better-sqlite3': OWN.optionalDependencies['better-sqlite3'] } : undefined
  assert.deepEqual(made.optionalDependencies, wanted)
})

test('the manifest of the package keeps the optional peers of the repository beside that driver', () => {
  const packed = packedManifest(OWN)
  const peerDependencies = packed.peerDependencies as Record<string, string>
  const meta = packed.peerDependenciesMeta as Record<string, { optional: boolean }>
  const names = [...Object.keys(OWN.peerDependencies), 'better-sqlite3'].sort()
  assert.deepEqual(Object.keys(peerDependencies).sort(), names)
  for (const name of names) assert.equal(meta[name]!.optional, true)
})
