import assert from 'node:assert/strict'
import { on } from 'node:events'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { plugin, reload, started } from './reloaded.ts'

const TOLD_MEMORY = fileURLToPath(new URL('../../support/told-memory.cjs', import.meta.url))

test('the memory that lanes share with the primary is not kept when they are replaced', async (t) => {
  const folder = await folderOf(t, { 'tell/plugins/tell.ts': plugin('one') })
  const heddle = await startHeddle(t, {
    domains: [SYSTEM_ROUTES, folder],
    env: { NODE_OPTIONS: `--require ${TOLD_MEMORY}`, HISTORY_ENABLED: 'true' },
  })
  const sharedBytes = async (): Promise<number> => {
    heddle.process.send('memory')
    for await (const [message] of on(heddle.process, 'message')) {
      if (message.memory !== undefined) return message.memory.arrayBuffers
    }
    throw new Error('It does not answer')
  }
  const atStart = await sharedBytes()
  for (let n = 0; n < 12; n++) assert.match(await reload(heddle), /^Reloaded/)
  const keptMib = ((await sharedBytes()) - atStart) >> 20
  // 70 and more where nothing of it is let go: V8 does not look for it.
  assert.ok(keptMib < 45, `${keptMib} MiB are kept`)
})

test('a handler that has had its time is waited for as long as its route allows, and no longer', async (t) => {
  const STOP = `this.logger = logger
    http.addEndpoint('/hang/short', 'GET', () => new Promise(() => {}), { timeoutMs: 200 })
    http.addEndpoint('/hang/long', 'GET', () => new Promise(() => {}), { timeoutMs: 3000 })
  }
  onStop() { this.logger.info('stops') `
  const { heddle } = await started(t, { 'tell/plugins/tell.ts': plugin('one', STOP) }, 1)
  const stops = () => heddle.logs.filter(({ msg }) => msg === 'stops').length
  const tookMs = async (path: string, status: number | null): Promise<number> => {
    const before = stops()
    const signal = AbortSignal.timeout(status === null ? 500 : 30_000)
    assert.equal(
      await heddle.json(path, { signal }).then(
        ({ status }) => status,
        () => null,
      ),
      status,
    )
    const startMs = performance.now()
    heddle.process.kill('SIGHUP')
    await until(() => stops() > before, 'the end of the old lane', 60_000)
    return performance.now() - startMs
  }
  const shortMs = await tookMs('/hang/short', 504)
  t.diagnostic(`${shortMs} ms`)
  assert.ok(shortMs < 30_000, `not as long as HTTP_HANDLER_TIMEOUT_MS would allow: ${shortMs} ms`)
  assert.ok((await tookMs('/hang/long', null)) > 2900, 'its route allows it 3 s')
})
