import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { plugin } from '#heddle/testing'
import ShowRequests from '../../../domains/system/plugins/show-requests.ts'
import { Questions } from '../../../src/history/questions.ts'
import { HistoryStore } from '../../../src/history/store.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { shareService } from '../../support/shared-service.ts'
import { until } from '../../support/until.ts'

describe('the list of requests', () => {
  const service = shareService((owner) => startHeddle(owner, { lanes: 1, env: { HISTORY_ENABLED: 'true' } }))

  test('a parameter that is wrong is refused with 422, which names it', async () => {
    const wrong = {
      limit: ['abc', '0', '1001', '1.5', ''],
      before: ['yesterday'],
      since: ['-1', 'NaN'],
      min_ms: ['1e400', 'fast'],
      status: ['abc', '6xx', '99', '5XX', 'FAILED'],
      method: ['G%20T'],
      text: ['x'.repeat(501)],
    }
    for (const [name, values] of Object.entries(wrong)) {
      for (const value of values) {
        const { status, body } = await service().json(`/system/requests?${name}=${value}`)
        assert.equal(status, 422, `${name}=${value}`)
        assert.equal(body.error, 'Validation failed')
        assert.deepEqual(
          body.details.map(({ path }: { path: string }) => path),
          [name],
        )
      }
    }
    const { body } = await service().json('/system/requests?limit=x&status=y&route=a&route=b')
    assert.deepEqual(
      body.details.map(({ path }: { path: string }) => path),
      ['status', 'route', 'limit'],
    )
  })

  test('the thread that writes the file has a lower priority', { skip: process.platform !== 'linux' }, async () => {
    const tasks = `/proc/${service().process.pid}/task`
    const niceness = (task: string): string =>
      readFileSync(join(tasks, task, 'stat'), 'utf8')
        .split(') ')
        .at(-1)!
        .split(' ')[16]!
    await until(() => readdirSync(tasks).filter((task) => niceness(task) === '10').length === 1, 'one thread gives way')
  })

  test('parameters that are right are taken', async () => {
    for (const query of [
      'limit=1000&status=5xx',
      'status=0',
      'since=1.5&before=99999999999999&min_ms=0',
      'method=get',
    ]) {
      assert.equal((await service().fetch(`/system/requests?${query}`)).status, 200, query)
    }
  })
})

test('where no history is kept, the list and a request say which variable it needs', async (t) => {
  const app = await plugin(t, ShowRequests, { domain: 'system' })
  for (const path of ['/system/requests', '/system/requests/req_1']) {
    const { status, body } = await app.get(path)
    assert.deepEqual([status, body.code], [404, 'HISTORY_OFF'], path)
    assert.match(body.error, /HISTORY_ENABLED=true/)
  }
})

test('what is no number does not filter', (t) => {
  const folder = temporaryFolder(t)
  const store = new HistoryStore({
    historyPath: join(folder, 'h.db'),
    historyMaxMb: 1,
    historyHours: 278,
    replicaId: 'r',
    heddleRelease: undefined,
  })
  t.after(() => store.close())
  const atMs = Date.now()
  const request = { method: 'GET', path: '/a', route: '/a', plugin: 'a.A', ms: 1, status: 200, lane: 0 }
  store.write([{ type: 'request', id: 'req_1', clientId: null, atMs, ...request }])
  const filter = { limit: Number.NaN, before: Number.NaN, since: Number.NaN, min_ms: Number.NaN }
  const rows = new Questions(store.database).answer({ kind: 'list', filter }) as { id: string }[]
  assert.deepEqual(
    rows.map(({ id }) => id),
    ['req_1'],
  )
})
