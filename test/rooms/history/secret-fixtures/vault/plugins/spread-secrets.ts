import { type Data, type HttpContext, Plugin, Sessions, type Tools } from '#heddle'

/** Makes each secret that heddle can make, and takes it wherever something is recorded, under names that say nothing. */
export default class SpreadSecrets extends Plugin {
  #tools
  #sessions: Sessions<{ user: string }>

  constructor({ auth, db, event_bus, http, logger, state }: Tools) {
    super()
    this.#tools = { auth, db, event_bus, logger }
    this.#sessions = new Sessions(state, { secure: false })
    http.addEndpoint('/secrets', 'POST', this.make)
    http.addEndpoint('/secrets/session', 'GET', (_data: Data, { cookies }: HttpContext) => ({
      session: cookies.session,
    }))
    http.addEndpoint('/notes', 'POST', this.spread)
    http.addEndpoint('/notes/:note', 'GET', () => ({ success: true }))
    http.addEndpoint('/fail', 'POST', ({ note }: Data) => {
      throw new Error(`cannot read ${note}`, { cause: new Error(`because of ${note}`) })
    })
    http.addEndpoint('/die', 'POST', ({ note }: Data) => {
      setTimeout(() => {
        throw new Error(`out of ${note}`)
      })
    })
    event_bus.subscribe('note.taken', this.read, { retries: 0 })
  }

  async make(_data: Data, context: HttpContext) {
    const { auth } = this.#tools
    await this.#sessions.start(context, { user: 'ada' })
    const token = await auth.createToken({ sub: 'ada' })
    return {
      hash: await auth.hashPassword('correct horse battery'),
      token,
      refresh: `${crypto.randomUUID()}.${auth.createSecret()}`,
      link: `https://example.com/reset?t=${auth.createSecret()}`,
      encoded: encodeURIComponent(await auth.hashPassword('per aspera')),
      header: `Bearer ${token}`,
    }
  }

  async spread({ note }: Data) {
    const { db, event_bus, logger } = this.#tools
    await db.execute('INSERT INTO notes VALUES ($1, $2)', ['one', note])
    await db.query(`SELECT '${note}' AS note`)
    await db.execute('UPDATE notes SET note = $1', [JSON.stringify({ deep: [note] })])
    logger.info(`A note: ${note}`, { note, list: [{ note }] })
    await event_bus.publish('note.taken', { note, list: [{ note }] })
    return { note, list: [`again ${note}`] }
  }

  read({ note }: Data) {
    this.#tools.logger.warning(`Read: ${note}`)
    throw new Error(`Not readable: ${note}`)
  }
}
