import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { packedManifest } from '../../../deploy/package/manifest.mjs'
import { scaffoldApplication } from '../../../src/devtools/scaffolding/application.ts'

const OWN = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
const OWN_NODE = Object.entries<string>(OWN.optionalDependencies).filter(([name]) => name.startsWith('node-'))

const OWN_EXECUTABLE = `\${workspaceFolder}/node_modules/.bin/node`

interface Launch {
  runtimeExecutable?: string
}

function made(node: string) {
  const { files, next } = scaffoldApplication('/nowhere/my-app', 'my-app', 'my-app', node)
  const json = (end: string) => JSON.parse(files.find(({ path }) => path.endsWith(end))!.text)
  const executables = json('launch.json').configurations.map((one: Launch) => one.runtimeExecutable)
  return { manifest: json('package.json'), next, executables }
}

test('an application that is made on an old Node brings the Node of the repository along, and says so', () => {
  const { manifest, next, executables } = made('20.20.2')
  assert.equal(OWN_NODE.length, 4)
  assert.deepEqual(manifest.optionalDependencies, Object.fromEntries(OWN_NODE))
  assert.equal(manifest.engines, undefined)
  assert.deepEqual(executables, [OWN_EXECUTABLE, OWN_EXECUTABLE, undefined])
  assert.match(next[0]!, /Node 20\.20\.2 is too old/)
})

test('on a newer one it asks for none', () => {
  for (const node of ['22.23.2', '24.1.0']) {
    const { manifest, next, executables } = made(node)
    assert.deepEqual(executables, [undefined, undefined, undefined])
    assert.equal(manifest.optionalDependencies, undefined)
    assert.match(next[0]!, /^cd my-app/)
  }
})

test('the packed manifest has engines and no Node of its own, the repository has a Node and no engines', () => {
  const packed = packedManifest(OWN)
  const optional = Object.keys(packed.optionalDependencies as object)
  assert.deepEqual(packed.engines, made('22.23.2').manifest.engines)
  assert.equal(OWN.engines, undefined)
  assert.deepEqual(
    optional.filter((name) => name.startsWith('node-')),
    [],
  )
  assert.equal(optional.length, Object.keys(OWN.optionalDependencies).length - OWN_NODE.length)
})
