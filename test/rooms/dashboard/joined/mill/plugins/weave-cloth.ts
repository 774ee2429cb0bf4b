import { type Data, Plugin, type Tools } from '#heddle'

/** Logs, publishes, and lets its lane die. */
export default class WeaveCloth extends Plugin {
  #bus
  #log
  #state

  constructor({ http, event_bus, logger, state }: Tools) {
    super()
    this.#bus = event_bus
    this.#log = logger
    this.#state = state
    http.addEndpoint('/cloth', 'POST', this.weave)
    http.addEndpoint('/dye', 'POST', this.fillDye)
    http.addEndpoint('/snap', 'POST', this.snap)
    event_bus.subscribe('cloth.woven', this.dye, { retries: 1, backoffMs: 1 })
  }

  async weave({ metres }: Data) {
    this.#log.debug('The loom is set up', { shafts: 4 })
    this.#log.info('Cloth is woven', { metres, colours: ['indigo', 'madder'] })
    return { success: true, data: { id: await this.#bus.publish('cloth.woven', { metres }) } }
  }

  async fillDye({ isThere }: Data) {
    await this.#state.set('dye', isThere === true)
    return { success: true }
  }

  async dye({ metres }: { metres: number }) {
    if (await this.#state.get('dye')) return
    const error = new Error(`No dye for ${metres} metres`)
    this.#log.error('The vat is empty', error as never)
    throw error
  }

  /** Throws where nothing catches it, so that its lane dies. */
  snap() {
    setImmediate(() => {
      throw new Error('The warp snapped')
    })
    return new Promise(() => {})
  }
}
