import assert from 'node:assert/strict'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'

const JOBS = (thread: string): string => `import { settle } from '../settle.ts'
export default class Work {
  static thread = '${thread}'
  constructor({ scheduler, db }) {
    scheduler.at('helper', new Date(0), () => settle())
    scheduler.at('own', new Date(0), async () => {
      await 1
      throw new Error('no money')
    })
    scheduler.at('sql', new Date(0), () => db.query('SELECT * FROM nowhere'))
    scheduler.at('text', new Date(0), () => { throw 'only a text' })
    for (const name of ['made', 'up']) scheduler.at(name + '-name', new Date(0), () => Promise.reject(null))
    scheduler.at('caused', new Date(0), () => { throw new Error('no rates', { cause: new Error('no network') }) })
    scheduler.at('long', new Date(0), () => { throw new Error('x'.repeat(1_000_000)) })
  }
}
`
const SETTLE = `export function settle(): never {
  throw new TypeError('no day')
}
`

for (const thread of ['worker', 'primary']) {
  test(`a failed job: the log names the line of its plugin, in the ${thread === 'worker' ? 'lane' : 'primary'}`, async (t) => {
    const folder = await folderOf(t, { 'work/plugins/work.ts': JOBS(thread), 'work/settle.ts': SETTLE })
    const { logs } = await startHeddle(t, { domains: [folder], lanes: 1 })
    const failed = () => logs.filter(({ msg }) => / failed: /.test(msg))
    await until(() => failed().length >= 8, 'all have failed')
    const lineOf = (name: string): string => String(failed().find(({ msg }) => msg.startsWith(`Job ${name} of `))?.line)
    assert.match(lineOf('helper'), /work\/settle\.ts:2:9$/)
    assert.match(lineOf('own'), /work\.ts:8:13$/)
    assert.match(lineOf('long'), /work\.ts:14:\d+$/)
    assert.ok(failed().some(({ msg }) => msg.endsWith('failed: no rates: no network')))
    // What has no stack of the plugin is found by the lane, which knows its file.
    if (thread === 'worker') {
      assert.match(lineOf('sql'), /work\.ts:10:\d+$/)
      assert.match(lineOf('text'), /work\.ts:11:\d+$/)
      assert.match(lineOf('made-name'), /work\/plugins\/work\.ts$/)
    }
    for (const line of failed()) assert.ok(line.msg.length < 4300, `${line.msg.length} characters`)
  })
}
