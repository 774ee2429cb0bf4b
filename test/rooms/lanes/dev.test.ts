import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { jsonOf, RawConnection, requestText } from '../../support/raw-client.ts'
import { until } from '../../support/until.ts'
import { isRunning } from '../guardian/guarded.ts'

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

test('npm run dev serves changed code on the port and the connections that are there, and keeps the old when it is broken', async (t) => {
  const folder = await folderOf(t, { 'shop/plugins/tell.ts': plugin('one'), 'shop/price.ts': price(1) })
  const file = join(folder, 'shop/plugins/tell.ts')
  const heddle = await startHeddle(t, { command: ['npm', 'run', 'dev'], domains: [folder], lanes: 1 })
  const { logs } = heddle
  const said = (text: string | RegExp, after = 0) =>
    until(
      () => logs.slice(after).find(({ msg }) => (typeof text === 'string' ? msg.startsWith(text) : text.test(msg))),
      `${text} in the log`,
      PATIENCE_MS,
    )
  const connection = await RawConnection.open(heddle.port)
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

  await t.test('SIGTERM ends all of its processes', async () => {
    await heddle.stop()
    await until(() => !isRunning(-heddle.process.pid!), 'the end of the last one', PATIENCE_MS)
    await said('SIGTERM: draining')
  })
})
