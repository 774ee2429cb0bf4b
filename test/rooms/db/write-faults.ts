import { mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { temporaryFolder } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { fixtureDomains, SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

export async function folders(t: TestContext) {
  const work = await realpath(temporaryFolder(t))
  const data = join(work, 'data')
  await mkdir(data)
  return { work, data, path: join(data, 'service.db') }
}

export const start = (t: TestContext, path: string, env: Record<string, string> = {}): Promise<Heddle> =>
  startHeddle(t, { domains: [SYSTEM_ROUTES, fixtureDomains('durable')], lanes: 1, env: { SQLITE_PATH: path, ...env } })

export async function post(heddle: Heddle, id: string, filler = 'x') {
  const { status, headers, body } = await heddle.post('/rows', { id, filler })
  return { status, retryAfter: headers.get('retry-after'), error: body.error }
}

export const BUSY = { status: 503, retryAfter: '1', error: 'The database does not take this at the moment' }

export async function readiness(heddle: Heddle): Promise<{ status: number; reasons: string }> {
  const { status, body } = await heddle.json('/system/health/ready')
  return { status, reasons: JSON.stringify(body) }
}
export const untilReady = (heddle: Heddle) => until(async () => (await readiness(heddle)).status === 200, 'it is ready')
export const untilNot = (heddle: Heddle, reason: RegExp) =>
  until(async () => {
    const { status, reasons } = await readiness(heddle)
    return status === 503 && reason.test(reasons)
  }, `it is not ready: ${reason}`)
