import assert from 'node:assert/strict'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { startGuarded } from './guarded.ts'

test('a plugin of the primary thread that loops in its boot is ended after PRIMARY_STALL_MS of work, and left out by the next process', {
  timeout: 120_000,
  skip: process.platform !== 'linux',
}, async (t) => {
  const folder = await folderOf(t, {
    'bad/plugins/loop.ts': `export default class Loop {
  static thread = 'primary'
  onBoot() { for (let n = 0; ; n++) if (n < 0) break }
}`,
  })
  const heddle = await startGuarded(t, { PRIMARY_STALL_MS: '2000' }, [folder])
  const { plugins } = (await heddle.json('/system/status')).body
  assert.equal(plugins['bad.Loop'].status, 'DEAD')
  assert.match(plugins['bad.Loop'].error, /while it booted/)
  assert.match(heddle.errors.join(''), /the primary thread of the runtime has stood still for \d{4,5} ms/)
  assert.equal(await heddle.stop(), 0)
})
