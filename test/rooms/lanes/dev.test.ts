import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { folderOf } from '../../support/folder.ts'
import type { LogLine } from '../../support/heddle.ts'
import { freePort } from '../../support/port.ts'
import { jsonOf, RawConnection, requestText } from '../../support/raw-client.ts'
import { until } from '../../support/until.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** Reloads are done in a fraction of this; a machine that is busy may take its time. */
const PATIENCE_MS = 30_000

const plugin = (version: string): string => `import { priceOf } from '../price.ts'
export default class Tell {
  constructor({ http }: any) {
    http.addEndpoint('/version', 'GET', () => ({ version: '${version}', price: priceOf() }))
  }
}
`
const price = (amount: number): string => `export const priceOf = (): number => ${amount}\n`

/** A real `npm run dev`, in a process group of its own. */
async function startDev(t: TestContext, folder: string) {
  const port = await freePort()
  const child = spawn('npm', ['run', 'dev'], {
    cwd: ROOT,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      TMPDIR: process.env.TMPDIR,
      npm_config_update_notifier: 'false',
      DOMAINS_DIR: folder,
      HTTP_PORT: String(port),
      LANES: '1',
      LOG_FORMAT: 'json',
      SQLITE_PATH: join(folder, 'service.db'),
    },
  })
  const group = child.pid!
  t.after(() => {
    if (isAlive(group)) process.kill(-group, 'SIGKILL')
  })
  const logs: LogLine[] = []
  let rest = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop()!
    // npm says first what it runs.
    for (const line of lines) if (line.startsWith('{')) logs.push(JSON.parse(line) as LogLine)
  })
  child.stderr.resume()
  const said = (text: string | RegExp, after = 0) =>
    until(
      () => logs.slice(after).find(({ msg }) => (typeof text === 'string' ? msg.startsWith(text) : text.test(msg))),
      `${text} in the log`,
      PATIENCE_MS,
    )
  await said('Serving on ')
  return { child, group, port, logs, said }
}

/** True while a process of the group is there. */
function isAlive(group: number): boolean {
  try {
    return process.kill(-group, 0)
  } catch {
    return false
  }
}

test('npm run dev serves changed code on the port and the connections that are there, and keeps the old when it is broken', {
  timeout: 180_000,
}, async (t) => {
  const folder = await folderOf(t, { 'shop/plugins/tell.ts': plugin('one'), 'shop/price.ts': price(1) })
  const file = join(folder, 'shop/plugins/tell.ts')
  const { child, group, port, logs, said } = await startDev(t, folder)
  const connection = await RawConnection.open(port)
  t.after(() => connection.drop())
  /** Over the one connection that was opened first. */
  const ask = async (): Promise<{ version: string; price: number }> => {
    await connection.send(requestText('GET', '/version'))
    const answer = await connection.response()
    assert.equal(answer?.status, 200)
    return jsonOf(answer!)
  }
  const served = async (what: string, condition: (answer: { version: string; price: number }) => boolean) => {
    const savedMs = performance.now()
    await until(async () => condition(await ask()), what, PATIENCE_MS)
    t.diagnostic(`${what}: served ${Math.round(performance.now() - savedMs)} ms after it was saved`)
  }
  /** Until the lane before is gone. How several lanes are replaced is asserted in reload.test.ts. */
  const reloaded = (after: number) => said('Reloaded in ', after)
  assert.equal((await ask()).version, 'one')

  await t.test('a plugin that is changed', async () => {
    const before = logs.length
    await writeFile(file, plugin('two'))
    await served('a changed plugin', ({ version }) => version === 'two')
    await reloaded(before)
    for (let n = 0; n < 6; n++) assert.equal((await ask()).version, 'two')
  })

  await t.test('a module that a plugin imports', async () => {
    const before = logs.length
    await writeFile(join(folder, 'shop/price.ts'), price(2))
    await served('a changed module', (answer) => answer.price === 2)
    await reloaded(before)
  })

  await t.test('a syntax error keeps the old code, and the log names file and line', async () => {
    const before = logs.length
    await writeFile(file, `${plugin('three')}\nexport const broken = (\n`)
    // The file may have been read while it was empty: then an older message stands before this one.
    await said(/^Not reloaded, the old code goes on: .*shop\/plugins\/tell\.ts:(?:8|9|10):/s, before)
    for (let n = 0; n < 6; n++) assert.equal((await ask()).version, 'two')
  })

  await t.test('mended, it is taken', async () => {
    const before = logs.length
    await writeFile(file, plugin('four'))
    await served('a mended plugin', ({ version }) => version === 'four')
    await reloaded(before)
  })

  await t.test('a file that an editor puts in its place', async () => {
    let before = logs.length
    await writeFile(join(folder, 'shop/plugins/.tell.swp'), plugin('five'))
    await rename(join(folder, 'shop/plugins/.tell.swp'), file)
    await served('a replaced plugin', ({ version }) => version === 'five')
    await reloaded(before)
    before = logs.length
    await writeFile(file, plugin('six'))
    await served('the replaced plugin, changed', ({ version }) => version === 'six')
    await reloaded(before)
  })

  await t.test('a plugin in a new folder', async () => {
    const before = logs.length
    await mkdir(join(folder, 'stock/plugins'), { recursive: true })
    const added = `export default class Stock { constructor({ http }) { http.addEndpoint('/stock', 'GET', () => ({})) } }`
    await writeFile(join(folder, 'stock/plugins/stock.ts'), added)
    await until(
      async () => (await fetch(`http://127.0.0.1:${port}/stock`)).status === 200,
      'the new plugin',
      PATIENCE_MS,
    )
    await reloaded(before)
  })

  await t.test('SIGTERM ends all of its processes', async () => {
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    await exited
    await until(() => !isAlive(group), 'the end of the last one', PATIENCE_MS)
    await said('SIGTERM: draining')
  })
})
