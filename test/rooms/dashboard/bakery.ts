import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { folderOf } from '../../support/folder.ts'
import { type Heddle, type Owner, startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const PLUGINS = 'bakery/plugins'

const sellBread = (waitMs: number) => `
export default class SellBread {
  #bus
  constructor({ http, event_bus }) {
    this.#bus = event_bus
    http.addEndpoint('/bread', 'GET', this.sell)
    http.addEndpoint('/burnt', 'GET', this.burn)
    http.addEndpoint('/oven', 'GET', this.die)
  }
  async sell() {
    await new Promise((resolve) => setTimeout(resolve, ${waitMs}))
    await this.#bus.publish('bread.sold', {})
    return { success: true }
  }
  burn() {
    throw new Error('The bread is burnt')
  }
  die() {
    setImmediate(() => {
      throw new Error('The oven broke')
    })
    return new Promise(() => {})
  }
}
`

const FILES = {
  [`${PLUGINS}/sell-bread.ts`]: sellBread(1),
  [`${PLUGINS}/ice-cake.ts`]: `
export default class IceCake {
  constructor({ http }) {
    http.addEndpoint('/cake/:id', 'GET', this.ice)
  }
  async ice() {
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    return { success: true }
  }
}
`,
  [`${PLUGINS}/count-bread.ts`]: `
export default class CountBread {
  constructor({ event_bus, scheduler }) {
    event_bus.subscribe('bread.sold', this.count, { retries: 0 })
    scheduler.every('sweep', 300, this.sweep)
  }
  async count() {
    await new Promise((resolve) => setTimeout(resolve, 30))
  }
  sweep() {}
}
`,
}

/** A service with a fast and a slow route, one that fails, one that ends its lane, a subscriber and a job. */
export interface Bakery {
  readonly service: Heddle
  /** Loads code in which a bread takes so long. */
  slower(waitMs: number): Promise<void>
}

export async function startBakery(t: Owner, env: Record<string, string> = {}): Promise<Bakery> {
  const folder = await folderOf(t, FILES)
  const service = await startHeddle(t, { domains: [SHIPPED, folder], lanes: 2, env })
  return {
    service,
    async slower(waitMs) {
      const before = service.logs.length
      await writeFile(join(folder, PLUGINS, 'sell-bread.ts'), sellBread(waitMs))
      service.process.kill('SIGHUP')
      await until(() => service.logs.slice(before).some(({ msg }) => msg.startsWith('Reloaded in ')), 'the reload')
    },
  }
}

export async function times(count: number, run: () => Promise<unknown>): Promise<void> {
  for (let n = 0; n < count; n++) await run()
}
