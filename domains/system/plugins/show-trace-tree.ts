import { causalForest, Plugin, type Tools, type TreeNode } from '#heddle'

/** The last 500 events by causality: each below the event whose subscriber published it. */
export default class ShowTraceTree extends Plugin {
  static override thread = 'primary' as const
  #http
  #bus

  constructor({ http, event_bus }: Tools) {
    super()
    this.#http = http
    this.#bus = event_bus
  }

  override onBoot() {
    this.#http.addEndpoint('/system/traces/tree', 'GET', this.show, {
      tags: ['system'],
      summary: 'The last 500 events by causality',
      description: 'Each event below the one that caused it.',
    })
  }

  async show(): Promise<TreeNode[]> {
    return causalForest(await this.#bus.getTraceHistory())
  }
}
