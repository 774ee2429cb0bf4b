import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'

const SCRIPT = new URL('../../../deploy/release/link-node.cjs', import.meta.url)
const OWN = `node-${process.platform}-${process.arch}`

test('a clone whose Node npm has taken out of .bin gets it back, and one that has it keeps it', async (t) => {
  const clone = await folderOf(t, { 'deploy/release/.keep': '', 'node_modules/.keep': '' })
  const script = join(clone, 'deploy/release/link-node.cjs')
  const link = join(clone, 'node_modules/.bin/node')
  copyFileSync(SCRIPT, script)
  const run = (): void => void execFileSync(process.execPath, [script])

  run()
  assert.throws(() => readlinkSync(link), { code: 'ENOENT' }, 'there is no Node to lead to')
  mkdirSync(join(clone, 'node_modules', OWN, 'bin'), { recursive: true })
  writeFileSync(join(clone, 'node_modules', OWN, 'bin/node'), '')
  run()
  assert.equal(readlinkSync(link), `../${OWN}/bin/node`)
  run()
  assert.equal(readlinkSync(link), `../${OWN}/bin/node`)

  const mac = await folderOf(t, {
    'deploy/release/.keep': '',
    [`node_modules/${OWN.replace('node-', 'node-bin-')}/bin/node`]: '',
  })
  copyFileSync(SCRIPT, join(mac, 'deploy/release/link-node.cjs'))
  execFileSync(process.execPath, [join(mac, 'deploy/release/link-node.cjs')])
  assert.equal(readlinkSync(join(mac, 'node_modules/.bin/node')), `../${OWN.replace('node-', 'node-bin-')}/bin/node`)

  const other = await folderOf(t, {
    'deploy/release/.keep': '',
    'node_modules/mine': '',
    [`node_modules/${OWN}/bin/node`]: '',
  })
  copyFileSync(SCRIPT, join(other, 'deploy/release/link-node.cjs'))
  mkdirSync(join(other, 'node_modules/.bin'))
  symlinkSync('../mine', join(other, 'node_modules/.bin/node'))
  execFileSync(process.execPath, [join(other, 'deploy/release/link-node.cjs')])
  assert.equal(readlinkSync(join(other, 'node_modules/.bin/node')), '../mine')
})
