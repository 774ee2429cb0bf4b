import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Heddle } from '../../support/heddle.ts'
import { startSystem, systemPlugins } from '../../support/system-domain.ts'
import { until } from '../../support/until.ts'

/** Plugin → a check in the running process that it works. */
const WORKS: Record<string, (heddle: Heddle) => Promise<boolean>> = {
  'check-tools': async (heddle) => (await toolsOf(heddle)).db.message === 'periodic check',
  'export-metrics': (heddle) => answers(heddle, '/system/metrics/prometheus'),
  'lint-architecture': (heddle) => answers(heddle, '/system/lint'),
  'list-traces': (heddle) => answers(heddle, '/system/traces/flat'),
  'log-in': (heddle) => answers(heddle, '/system/login'),
  'manage-dead-letters': (heddle) => answers(heddle, '/system/dead-letters'),
  'manage-jobs': (heddle) => answers(heddle, '/system/jobs'),
  'manage-queues': (heddle) => answers(heddle, '/system/queues'),
  'monitor-deliveries': async (heddle) =>
    heddle.logs.some(({ identity, msg }) => identity === 'system.MonitorDeliveries' && msg.includes('probe.doomed')),
  'publish-event': async (heddle) => (await heddle.post('/system/events/publish')).status !== 404,
  'report-liveness': (heddle) => answers(heddle, '/system/health/live'),
  'report-readiness': (heddle) => answers(heddle, '/system/health/ready'),
  'serve-assistants': async (heddle) =>
    (await heddle.fetch('/system/mcp', { method: 'POST', body: '{}' })).status !== 404,
  'show-client': (heddle) => answers(heddle, '/system/client.ts'),
  'show-dashboard': (heddle) => answers(heddle, '/system/dashboard'),
  'show-docs': (heddle) => answers(heddle, '/system/docs'),
  'show-lanes': (heddle) => answers(heddle, '/system/lanes'),
  'show-openapi': (heddle) => answers(heddle, '/system/openapi.json'),
  'show-plugins': (heddle) => answers(heddle, '/system/plugins'),
  'show-requests': (heddle) => answers(heddle, '/system/requests'),
  'show-status': (heddle) => answers(heddle, '/system/status'),
  'show-topology': (heddle) => answers(heddle, '/system/events'),
  'show-trace-tree': (heddle) => answers(heddle, '/system/traces/tree'),
  'stream-dashboard': (heddle) => answers(heddle, '/system/dashboard/stream'),
  'stream-events': (heddle) => answers(heddle, '/system/events/stream'),
  'stream-logs': (heddle) => answers(heddle, '/system/logs/stream'),
  'stream-traces': (heddle) => answers(heddle, '/system/traces/stream'),
}
/** The plugin that the test itself needs: it stays in both halves. */
const KEPT = 'show-status'

for (const half of [0, 1]) {
  test(`the system plugins work without each other: half ${half + 1} of them deleted`, async (t: TestContext) => {
    const plugins = await systemPlugins()
    assert.deepEqual(plugins.toSorted(), Object.keys(WORKS).sort(), 'this test knows every plugin')
    const without = plugins.filter((name, n) => n % 2 === half && name !== KEPT)
    const heddle = await startSystem(t, { without, lanes: 1, env: { HISTORY_ENABLED: 'true' } })
    await heddle.post('/probe/publish', { event: 'probe.doomed', payload: {} })

    const { body } = await heddle.json('/system/status')
    const dead = Object.entries<{ status: string }>(body.plugins).filter(([, { status }]) => status !== 'OK')
    assert.deepEqual(dead, [])
    for (const name of plugins) {
      if (without.includes(name)) {
        assert.equal(await WORKS[name]!(heddle), false, `${name} was deleted, and is there`)
      } else await until(() => WORKS[name]!(heddle), `${name} works`)
    }
    assert.equal(await heddle.stop(), 0)
  })
}

async function answers(heddle: Heddle, path: string): Promise<boolean> {
  const leave = new AbortController()
  const { status } = await heddle.fetch(path, { signal: leave.signal })
  leave.abort()
  assert.ok(status === 200 || status === 404, `${path} answered ${status}`)
  return status === 200
}

async function toolsOf(heddle: Heddle): Promise<Record<string, { message: string | null }>> {
  return (await heddle.json('/system/status')).body.tools
}
