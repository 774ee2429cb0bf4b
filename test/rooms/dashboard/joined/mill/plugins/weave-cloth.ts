import { type Data, plugin } from '#heddle'

/** Logs, publishes, and lets its lane die. */
export default plugin(({ http, event_bus, logger, state }) => {
  http.addEndpoint('/cloth', 'POST', weave)
  http.addEndpoint('/dye', 'POST', fillDye)
  http.addEndpoint('/snap', 'POST', snap)
  event_bus.subscribe('cloth.woven', dye, { retries: 1, backoffMs: 1 })

  async function weave({ metres }: Data) {
    logger.debug('The loom is set up', { shafts: 4 })
    logger.info('Cloth is woven', { metres, colours: ['indigo', 'madder'] })
    return { success: true, data: { id: await event_bus.publish('cloth.woven', { metres }) } }
  }

  async function fillDye({ isThere }: Data) {
    await state.set('dye', isThere === true)
    return { success: true }
  }

  async function dye({ metres }: { metres: number }) {
    if (await state.get('dye')) return
    const error = new Error(`No dye for ${metres} metres`)
    logger.error('The vat is empty', error as never)
    throw error
  }

  /** Throws where nothing catches it, so that its lane dies. */
  function snap() {
    setImmediate(() => {
      throw new Error('The warp snapped')
    })
    return new Promise(() => {})
  }
})
