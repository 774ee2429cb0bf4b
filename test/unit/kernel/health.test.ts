import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PluginHealth } from '../../../src/contracts/registry.ts'
import { Health } from '../../../src/primary/health/health.ts'
import { createStatusTable, StatusTable } from '../../../src/transport/memory/words.ts'

const FINE: PluginHealth = { status: 'OK', domain: 'shop', tools: [] }
const BROKEN: PluginHealth = { status: 'DEAD', error: 'no such file', tools: [] }

function health() {
  const made = new Health({
    statuses: new StatusTable(createStatusTable()),
    toolIndex: () => -1,
    toolNames: () => [],
    lanes: () => ({}),
    onChange: () => {},
  })
  return { made, status: (plugin: string) => made.dump().plugins[plugin]?.status }
}

test('a plugin is dead while one thread that lives says so, whatever the others say and in which order', () => {
  const { made, status } = health()
  const [one, two, three] = [{}, {}, {}]
  made.setPlugins(one, { 'shop.Sell': FINE })
  made.setPlugins(two, { 'shop.Sell': BROKEN })
  made.setPlugins(three, { 'shop.Sell': FINE })
  assert.equal(status('shop.Sell'), 'DEAD')
  made.threadGone(two)
  assert.equal(status('shop.Sell'), 'OK')
})

test('the last word of the last thread stands until another hosts the plugin', () => {
  const { made, status } = health()
  const [primary, one, two] = [{}, {}, {}]
  made.setPlugins(primary, { 'system.Status': FINE })
  made.setPlugins(one, { 'shop.Sell': BROKEN })
  made.threadGone(one)
  assert.equal(status('shop.Sell'), 'DEAD')
  assert.equal(status('system.Status'), 'OK')
  made.setPlugins(two, { 'shop.Sell': FINE })
  assert.equal(status('shop.Sell'), 'OK')
})
