import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { folderOf, temporaryFolder } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { SYSTEM_ROUTES } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

/** Far longer than a lane that leaves keeps anything, and far less than it may stay for a native call. */
const TIMEOUT_MS = 100_000

/** Reads from a pipe that nobody writes to: the call is native, and neither its lane nor the process gets it back. */
const plugins = (pipe: string): Record<string, string> => ({
  'works/plugins/read-pipe.js': `
import { existsSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
const PIPE = ${JSON.stringify(pipe)}
export default class ReadPipe {
  constructor({ event_bus, http, logger }) {
    event_bus.subscribe('pipe.opened', async ({ n }) => {
      logger.info('begins ' + n)
      if (!existsSync(PIPE + '.met')) {
        writeFileSync(PIPE + '.met', '')
        await readFile(PIPE)
      }
      logger.info('handled ' + n)
    }, { timeoutMs: ${TIMEOUT_MS}, retries: 3 })
    http.addEndpoint('/events/:n', 'POST', async ({ n }) => ({ id: await event_bus.publish('pipe.opened', { n: Number(n) }, { key: 'one' }) }))
  }
}`,
  'works/plugins/end-lane.js': `
export default class EndLane {
  constructor({ http }) {
    http.addEndpoint('/end', 'POST', async () => {
      setTimeout(() => { throw new Error('ends its lane') }, 1)
      await new Promise(() => {})
    })
  }
}`,
})

test("what a lane that leaves has in hand is another's, though a native call keeps its thread", async (t) => {
  const pipe = join(temporaryFolder(t), 'pipe')
  execFileSync('mkfifo', [pipe])
  const domains = [await folderOf(t, plugins(pipe)), SYSTEM_ROUTES]
  const heddle = await startHeddle(t, { domains, lanes: 1 })
  const said = (text: string) => heddle.logs.filter(({ msg }) => msg === text).length
  await heddle.post('/events/1', {})
  await until(() => said('begins 1') === 1, 'the first attempt')
  await heddle.post('/events/2', {})
  assert.ok((await heddle.fetch('/end', { method: 'POST' })).status >= 500)
  await until(() => said('handled 2') === 1, 'the event behind it', TIMEOUT_MS - 20_000)
  assert.deepEqual([said('begins 1'), said('handled 1'), said('begins 2')], [2, 1, 1])
  // Somebody has opened it: now the thread may leave.
  closeSync(openSync(pipe, constants.O_RDWR))
  await until(async () => (await heddle.fetch('/system/status')).ok && (await heddle.stop()) === 0, 'the end')
})
