import { type Data, type HttpContext, plugin, Sessions } from '#heddle'

/** Makes each secret that heddle can make, and takes it wherever something is recorded, under names that say nothing. */
export default plugin(({ auth, db, event_bus, http, logger, state }) => {
  const sessions: Sessions<{ user: string }> = new Sessions(state, { secure: false })
  http.addEndpoint('/secrets', 'POST', make)
  http.addEndpoint('/secrets/session', 'GET', (_data: Data, { cookies }: HttpContext) => ({
    session: cookies.session,
  }))
  http.addEndpoint('/notes', 'POST', spread)
  http.addEndpoint('/notes/:note', 'GET', () => ({ success: true }))
  http.addEndpoint('/fail', 'POST', ({ note }: Data) => {
    throw new Error(`cannot read ${note}`, { cause: new Error(`because of ${note}`) })
  })
  http.addEndpoint('/die', 'POST', ({ note }: Data) => {
    setTimeout(() => {
      throw new Error(`out of ${note}`)
    })
  })
  event_bus.subscribe('note.taken', read, { retries: 0 })

  async function make(_data: Data, context: HttpContext) {
    await sessions.start(context, { user: 'ada' })
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

  async function spread({ note }: Data) {
    await db.execute('INSERT INTO notes VALUES ($1, $2)', ['one', note])
    await db.query(`SELECT '${note}' AS note`)
    await db.execute('UPDATE notes SET note = $1', [JSON.stringify({ deep: [note] })])
    logger.info(`A note: ${note}`, { note, list: [{ note }] })
    await event_bus.publish('note.taken', { note, list: [{ note }] })
    return { note, list: [`again ${note}`] }
  }

  function read({ note }: Data) {
    logger.warning(`Read: ${note}`)
    throw new Error(`Not readable: ${note}`)
  }
})
