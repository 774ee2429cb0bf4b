import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PluginHealth } from '../../../src/contracts/registry.ts'
import { Health } from '../../../src/primary/health/health.ts'
import { createStatusTable } from '../../../src/transport/memory/words.ts'

const FINE: PluginHealth = { status: 'OK', domain: 'shop', tools: ['db'] }
const BROKEN: PluginHealth = { status: 'DEAD', error: 'no such file', tools: [] }

function healthOf() {
  let changes = 0
  const health = new Health({ names: [], indexOf: () => -1 }, createStatusTable(), { countByState: () => ({}) })
  health.onChange = () => void changes++
  return {
    health,
    plugins: () => health.dump().plugins,
    get changes() {
      return changes
    },
  }
}

test('a plugin that is disabled is dead with the reason, whatever its threads say, until it is taken back', () => {
  const parts = healthOf()
  const { health, plugins } = parts
  health.setPlugins({}, { 'shop.Sell': FINE, 'shop.Buy': FINE })
  const before = parts.changes
  health.setDisabled('shop.Sell', 'Disabled until noon')
  assert.deepEqual(plugins(), {
    'shop.Buy': FINE,
    'shop.Sell': { status: 'DEAD', error: 'Disabled until noon', tools: ['db'] },
  })
  health.setPlugins({}, { 'shop.Sell': FINE })
  assert.equal(plugins()['shop.Sell']?.status, 'DEAD', 'a new lane changes nothing')
  health.setDisabled('shop.Sell', null)
  assert.deepEqual(plugins()['shop.Sell'], FINE)
  assert.equal(parts.changes, before + 3, 'each change is told')
})

test('new code is refused for a plugin that was up and would not be, and for no other reason', () => {
  const { health } = healthOf()
  assert.equal(health.refusalOf({ 'shop.Sell': BROKEN }), 'shop.Sell: no such file', 'of a plugin that is new')
  health.setPlugins({}, { 'shop.Sell': FINE, 'shop.Old': BROKEN, 'shop.Gone': FINE })
  assert.equal(health.refusalOf({ 'shop.Sell': FINE, 'shop.Old': BROKEN }), null, 'what is dead may stay so')
  assert.equal(health.refusalOf({ 'shop.Sell': FINE, 'shop.Old': FINE, 'shop.New': FINE }), null)
  assert.equal(health.refusalOf({}), null, 'files may be removed')
  assert.equal(
    health.refusalOf({ 'shop.Sell': BROKEN, 'shop.New': { ...BROKEN, error: 'no tool' } }),
    'shop.Sell: no such file\nshop.New: no tool',
  )
})

test('what a thread said holds no more once it has left, unlike the last word of one that died', () => {
  const parts = healthOf()
  const { health, plugins } = parts
  const [old, dead, fresh] = [{}, {}, {}]
  health.setPlugins(old, { 'shop.Old': BROKEN, 'shop.Sell': FINE })
  health.setPlugins(dead, { 'shop.Dead': FINE })
  health.setPlugins(fresh, { 'shop.Sell': FINE })
  health.threadGone(dead)
  health.threadLeft(old)
  assert.deepEqual(Object.keys(plugins()), ['shop.Dead', 'shop.Sell'])
  health.threadLeft(dead)
  assert.deepEqual(Object.keys(plugins()), ['shop.Sell'])
  const { changes } = parts
  health.threadLeft(dead)
  assert.equal(parts.changes, changes, 'nothing to tell of one that said nothing')
})

test('what died and came back with fewer plugins is believed when all threads have reported again', () => {
  const { health, plugins } = healthOf()
  const [dead, fresh] = [{}, {}]
  health.setPlugins(dead, { 'shop.Gone': FINE, 'shop.Sell': FINE })
  health.threadGone(dead)
  health.setPlugins(fresh, { 'shop.Sell': FINE })
  assert.deepEqual(Object.keys(plugins()), ['shop.Gone', 'shop.Sell'], 'another thread may still host it')
  health.allReported()
  assert.deepEqual(Object.keys(plugins()), ['shop.Sell'])
})

test('a plugin is dead while one thread that lives says so, whatever the others say and in which order', () => {
  const { health, plugins } = healthOf()
  const broken = {}
  for (const thread of [{}, broken, {}]) health.setPlugins(thread, { 'shop.Sell': thread === broken ? BROKEN : FINE })
  assert.equal(plugins()['shop.Sell']?.status, 'DEAD')
  health.threadGone(broken)
  assert.equal(plugins()['shop.Sell']?.status, 'OK')
})

test('the last word of the last thread stands until another hosts the plugin', () => {
  const { health, plugins } = healthOf()
  const one = {}
  health.setPlugins({}, { 'system.Status': FINE })
  health.setPlugins(one, { 'shop.Sell': BROKEN })
  health.threadGone(one)
  assert.deepEqual([plugins()['shop.Sell']?.status, plugins()['system.Status']?.status], ['DEAD', 'OK'])
  health.setPlugins({}, { 'shop.Sell': FINE })
  assert.equal(plugins()['shop.Sell']?.status, 'OK')
})
