import assert from 'node:assert/strict'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { allUp, boxesOf } from './deadly.ts'

const BREAKS = `
const breaks = {
  throws() { Array.prototype.map = () => { throw new Error('planted') } },
  lies() { Map.prototype.get = () => undefined },
  frozen() { Object.freeze(Error.prototype) },
  works() {
    const { filter } = Array.prototype
    Array.prototype.filter = function (...args) { return filter.apply(this, args) }
  },
}
export default class Break {
  constructor({ http }) {
    http.addEndpoint('/break/:what', 'POST', ({ what }) => breaks[what]())
  }
}`
const INNOCENT = `
export default class Innocent {
  constructor({ http }) {
    http.addEndpoint('/innocent', 'GET', () => ({ numbers: [1, 2].map((n) => new Map([[n, n]]).get(n)) }))
  }
}`

const FILES = { 'break/plugins/break.ts': BREAKS, 'innocent/plugins/innocent.ts': INNOCENT }
const breakBy = (heddle: Heddle, how: string) => heddle.json(`/break/${how}`, { method: 'POST' })

test('a lane in which a builtin was broken leaves, and who has broken it is named', async (t) => {
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, await folderOf(t, FILES)] })
  let deaths = 0
  // A builtin that was replaced and works is no reason: agents do that.
  for (let n = 0; n < 4; n++) await breakBy(heddle, 'works')
  for (const [how, message, guilty] of [
    ['frozen', /^Error\.prototype is broken: Cannot assign to read only property/, null],
    ['throws', /^Array\.prototype\.map is broken: planted$/, ['break.Break', 'stack', 3]],
    ['lies', /^Map\.prototype\.get is broken: it does not do what it should$/, ['break.Break', 'stack', 4]],
  ] as const) {
    await breakBy(heddle, how)
    await until(() => heddle.logs.filter(({ msg }) => / died: /.test(msg)).length > deaths, `${how}: its end`, 60_000)
    await allUp(heddle)
    deaths++
    const boxes = await boxesOf(heddle)
    assert.equal(boxes.length, deaths, how)
    assert.equal(boxes[0]!.reason, 'broken', how)
    assert.match(boxes[0]!.message, message)
    const { plugin, evidence, line } = boxes[0]!.guilty ?? {}
    // Nothing tells who has frozen it, but a lane of its own.
    if (guilty === null) assert.ok(plugin !== 'innocent.Innocent' || evidence === 'last', how)
    else assert.deepEqual([plugin, evidence, Number(line!.split(':').at(-2))], guilty)
    for (let n = 0; n < 20; n++) assert.equal((await heddle.json('/innocent')).status, 200, how)
  }
  const { plugins } = (await heddle.json('/system/status')).body
  assert.match(plugins['break.Break'].error, /^It brought down a lane by what it has broken: /)
})
