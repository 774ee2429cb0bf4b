import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { plugin } from '#heddle/testing'
import { temporaryFolder } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { fixture } from '../../support/lint-fixture.ts'

const pluginText = (Class: string, from: string, thread = '') => `
import { z } from '${import.meta.resolve('zod')}'
import { HeddleError, Plugin, type Tools } from '${from}'

export default class ${Class} extends Plugin {
  ${thread}
  #http
  constructor({ http }: Tools) {
    super()
    this.#http = http
  }
  override onBoot() {
    this.#http.addEndpoint('/${Class}', 'GET', () => ({ success: true, data: Plugin.name }))
    this.#http.addEndpoint('/${Class}/none', 'GET', () => {
      throw new HeddleError('HTTP_NOT_FOUND', 'None')
    }, { query: z.object({}) })
  }
}
`

test('a domain outside of the repository imports the runtime by both of its names, in lanes, on the primary and in a test', async (t) => {
  const domains = temporaryFolder(t)
  const plugins = join(domains, 'shop/plugins')
  await mkdir(plugins, { recursive: true })
  await writeFile(join(domains, 'package.json'), '{"type":"module"}')
  const primary = "static override thread = 'primary' as const"
  await writeFile(join(plugins, 'a.ts'), pluginText('A', 'heddle'))
  await writeFile(join(plugins, 'b.ts'), pluginText('B', '#heddle'))
  await writeFile(join(plugins, 'c.ts'), pluginText('C', 'heddle', primary))
  await writeFile(join(plugins, 'd.ts'), pluginText('D', '#heddle', primary))

  const { json, stop } = await startHeddle(t, { domains: [domains], lanes: 1, isGuarded: true })
  for (const name of ['A', 'B', 'C', 'D']) {
    assert.deepEqual((await json(`/${name}`)).body, { success: true, data: 'Plugin' })
    // The error is known by its class: there is one runtime, not two.
    assert.equal((await json(`/${name}/none`)).status, 404)
  }
  assert.equal(await stop(), 0)

  const { default: A } = await import(join(plugins, 'a.ts'))
  const app = await plugin(t, A)
  assert.deepEqual((await app.get('/A')).body, { success: true, data: 'Plugin' })
})

test('the lint knows the tools by either name of the runtime', async (t) => {
  const text = (from: string) => `
import { Plugin, type Tools } from '${from}'
export default class Pay extends Plugin {
  #tools
  constructor(tools: Tools) { super(); this.#tools = tools }
  async pay() {
    await this.#tools.db.execute('INSERT INTO orders (id) VALUES ($1)', [1])
    await this.#tools.event_bus.publish('order.paid', {})
  }
}
`
  const { findings } = await fixture(t, {
    'a/plugins/pay.ts': text('heddle'),
    'b/plugins/pay.ts': text('#heddle'),
  })
  assert.equal((await findings('dual-write')).length, 2)
  assert.deepEqual(await findings('domain-isolation'), [])
})
