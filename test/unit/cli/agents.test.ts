import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { withAgentsPart } from '../../../src/devtools/scaffolding/agents.ts'
import { folderOf } from '../../support/folder.ts'

const TOOLS = fileURLToPath(new URL('../../../src/tools', import.meta.url))

const PLUGIN = `import { Plugin } from '#heddle'

export default class ShipOrder extends Plugin {
  #bus
  #http
  constructor({ event_bus, http }) {
    super()
    this.#bus = event_bus
    this.#http = http
  }
  onBoot() {
    this.#http.addEndpoint('/orders/:id/ship', 'POST', this.ship)
    this.#bus.subscribe('order.paid', this.note)
  }
  async ship({ id }) {
    await this.#bus.publish('order.shipped', { id })
  }
  note() {}
}
`

test('AGENTS.md tells what a project has, and keeps what somebody has written into it', async (t) => {
  const folder = await folderOf(t, {
    'package.json': '{ "type": "module", "scripts": { "dev": "heddle dev", "test": "heddle test", "own": "x" } }',
    'domains/shop/plugins/ship-order.ts': PLUGIN,
    'domains/shop/events.ts':
      "import { z } from 'zod'\nexport default { 'order.shipped': z.object({ id: z.string() }) }\n",
  })
  const source = { folder, domainsDirs: [`${folder}/domains`], toolsDir: TOOLS, tools: 'postgres' }
  const text = await withAgentsPart('# Ours\n\nNever on Fridays.\n', source)
  assert.match(text, /^# Ours\n\nNever on Fridays\.\n\n<!-- heddle agents/)
  assert.ok(
    text.includes(
      '- **shop**\n  - `shop.ShipOrder` in `domains/shop/plugins/ship-order.ts`: answers `POST /orders/:id/ship`; handles `order.paid`; publishes `order.shipped`\n',
    ),
    text,
  )
  assert.match(text, /\| `order\.shipped` \| `shop\.ShipOrder` \| – \| `domains\/shop\/events\.ts:2` \|/)
  assert.match(text, /\| `order\.paid` \| – \| `shop\.ShipOrder` \| none \|/)
  assert.match(text, /`auth`, .*`db` \(postgres\), .*`http`/)
  assert.match(text, /- `npm run dev`: .*\n- `npm test`: /)
  assert.doesNotMatch(text, /npm run own|npm run check/)

  assert.equal(await withAgentsPart(text, source), text)
  const edited = text.replace('Never on Fridays.', 'Always on Fridays.').replace('order.paid', 'order.gone')
  assert.equal(await withAgentsPart(edited, source), text.replace('Never', 'Always'))
  assert.match(
    await withAgentsPart('', { ...source, domainsDirs: [`${folder}/none`] }),
    /^# For coding agents\n\n<!--.*There are no domains yet/s,
  )
})
