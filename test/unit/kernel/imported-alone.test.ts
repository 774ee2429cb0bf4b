import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { type BootContext, bootFault } from '../../../src/runtime/advice/boot-fault.ts'
import { folderOf } from '../../support/folder.ts'

test('a package whose exports have import alone is named, with the way out', async (t) => {
  const own = 'node_modules/@only/modules'
  const exports = { '.': { import: './index.js' } }
  const folder = await folderOf(t, {
    [`${own}/package.json`]: JSON.stringify({ name: '@only/modules', type: 'module', exports }),
    [`${own}/index.js`]: 'export const a = 1',
    'take.ts': "import * as modules from '@only/modules'\nexport default class Take {}\n",
  })
  const file = join(folder, 'take.ts')
  let thrown: unknown
  try {
    createRequire(file)('@only/modules')
  } catch (error) {
    thrown = error
  }
  const { text } = bootFault(thrown, { file, stage: 'load', facts: {} as BootContext['facts'] })
  assert.match(text, /No "exports" main defined .*plugins are loaded with `require`/)
  assert.match(text, /take\.ts:1:/)
  assert.match(
    text,
    /Fix: load it where it may wait, in `async onBoot\(\)`: this\.lib = await import\('@only\/modules'\)\./,
  )
})
