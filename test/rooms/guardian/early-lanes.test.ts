import assert from 'node:assert/strict'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { until } from '../../support/until.ts'
import { startGuarded } from './guarded.ts'

const SLOW = `import { Plugin } from '#heddle'
export default class BootLong extends Plugin {
  static thread = 'primary'
  async onBoot() { await new Promise((resolve) => setTimeout(resolve, 3000)) }
}`

test('what ends the process as its first request is named, also where the lanes were up before the primary', async (t) => {
  const slow = await folderOf(t, { 'slow/plugins/boot-long.ts': SLOW })
  const heddle = await startGuarded(t, {}, [slow])
  await heddle.die('/abort/split')
  await heddle.pid()
  const line = await until(
    () => heddle.logs.find(({ msg }) => msg.startsWith('The process before this one is dead')),
    'the line',
  )
  assert.match(line.msg, / in GET \/abort\/:way$/)
  assert.equal(await heddle.stop(), 0)
})
