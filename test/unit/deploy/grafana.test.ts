import assert from 'node:assert/strict'
import { test } from 'node:test'
import { expressionsOf, readDashboard } from '../../rooms/deploy/dashboard.ts'

/** Columns of Grafana's grid. */
const COLUMNS = 24

test('each panel of the dashboard has an id of its own, a place of its own, and asks the chosen data source', () => {
  const { panels, schemaVersion, uid } = readDashboard()
  assert.deepEqual([schemaVersion, uid], [39, 'heddle'])
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  const taken = new Map<string, string>()
  for (const { title, type, gridPos, datasource, targets = [] } of panels) {
    assert.notEqual(title, '')
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.ok(x < COLUMNS, title)
        assert.equal(taken.get(`${x} ${y}`), undefined, `${title} lies on it`)
        taken.set(`${x} ${y}`, title)
      }
    if (type === 'row') continue
    assert.ok(targets.length > 0, title)
    assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title)
    for (const source of [datasource, ...targets.map((target) => target.datasource)])
      assert.deepEqual(source, { type: 'prometheus', uid: `$\{datasource}` }, title)
  }
})

test('the dashboard defines each variable that it uses, and each panel keeps to the chosen service', () => {
  const dashboard = readDashboard()
  const names = new Set(dashboard.templating.list.map(({ name }) => name))
  for (const { at, expr } of expressionsOf(dashboard)) {
    const used = [...expr.matchAll(/\$\{?(\w+)/g)].map(([, name]) => name!)
    for (const name of used) assert.ok(names.has(name) || name === '__rate_interval', `${at}: ${name}`)
    const selectors = expr.match(/\b(?:heddle|process)_[a-z_]+\{[^}]*\}/g) ?? []
    assert.ok(selectors.length > 0, at)
    for (const selector of selectors) assert.match(selector, /\{job="\$job",instance=~"\$instance"[,}]/, at)
  }
})
