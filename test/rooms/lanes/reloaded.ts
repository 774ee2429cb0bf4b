import { join } from 'node:path'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

/** A plugin whose answers and log lines tell its version. */
export const plugin = (version: string, more = '') => `
import { threadId } from 'node:worker_threads'
export default class Tell {
  constructor({ http, event_bus, logger, scheduler }) {
    http.addEndpoint('/version', 'GET', () => ({ version: '${version}', thread: threadId }))
    http.addEndpoint('/slow', 'GET', async () => {
      logger.info('slow begins')
      await new Promise((resolve) => setTimeout(resolve, 1500))
      return { version: '${version}' }
    })
    http.addEndpoint('/publish', 'POST', async ({ n }) => ({ id: await event_bus.publish('told', { n }) }))
    event_bus.subscribe('told', function onTold({ n }, { attempt }) { logger.info('told', { n, attempt, version: '${version}' }) })
    ${more}
  }
}
`

export const started = async (t: Parameters<typeof folderOf>[0], files: Record<string, string>, lanes = 2) => {
  const folder = await folderOf(t, files)
  const heddle = await startHeddle(t, { domains: [SYSTEM_ROUTES, folder], lanes })
  return { folder, heddle, file: join(folder, 'tell/plugins/tell.ts') }
}

const reloads = (heddle: Heddle) => heddle.logs.filter(({ msg }) => /^(?:Reloaded|Not reloaded)/.test(msg))

export async function reload(heddle: Heddle): Promise<string> {
  const before = reloads(heddle).length
  heddle.process.kill('SIGHUP')
  await until(() => reloads(heddle).length > before, 'the end of the reload', 60_000)
  return reloads(heddle).at(-1)!.msg
}
