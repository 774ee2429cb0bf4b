import { type Data, type HttpContext, Plugin, type Tools } from '#heddle'
export default class Mix extends Plugin {
  #t
  constructor({ http, db, state, event_bus, logger, auth }: Tools) {
    super()
    this.#t = { db, state, event_bus, logger, auth }
    http.addEndpoint('/hello', 'GET', () => ({ hello: 'world' }))
    http.addEndpoint('/big', 'GET', () => ({ text: 'x'.repeat(100_000) }))
    http.addEndpoint('/rows', 'POST', this.write)
    http.addEndpoint('/rows', 'GET', () => db.query('SELECT id, note FROM mix_rows ORDER BY id DESC LIMIT 20'))
    http.addEndpoint('/mirror', 'POST', (data: Data, context: HttpContext) => ({
      data,
      agent: context.headers['user-agent'],
    }))
    http.addEndpoint('/fail', 'GET', () => {
      throw new Error('no')
    })
    http.addEndpoint('/slow', 'GET', async () => {
      await new Promise((r) => setTimeout(r, 100))
      return { ok: 1 }
    })
    http.addEndpoint(
      '/upload',
      'POST',
      async (_d: Data, context: HttpContext) => {
        let bytes = 0
        for await (const chunk of context.stream as AsyncIterable<Uint8Array>) bytes += chunk.byteLength
        return { bytes }
      },
      { body: 'stream' },
    )
    http.addStream('/feed', async (_d, stream) => {
      for (let n = 0; n < 20 && !stream.closed; n++) {
        stream.send({ n })
        await new Promise((r) => setTimeout(r, 20))
      }
      stream.close()
    })
    http.addWebSocket('/talk', {
      message: (socket, text) => {
        socket.send(`echo ${text}`)
      },
    } as never)
    event_bus.subscribe('mix.done', async ({ id }) => {
      await this.#t.state.increment(`seen-${Number(id) % 100}`)
    })
    event_bus.subscribe(
      'mix.done',
      () => {
        if (Math.random() < 0.01) throw new Error('sometimes')
      },
      { group: 'flaky' },
    )
  }
  async write({ note }: Data) {
    const id = Math.floor(Math.random() * 1e9)
    await this.#t.db.transaction(async (tx) => {
      await tx.execute('INSERT INTO mix_rows VALUES ($1, $2)', [id, note])
      await tx.publish('mix.done', { id, note })
    })
    if (id % 50 === 0) await this.#t.db.execute('DELETE FROM mix_rows WHERE id % 3 = 0')
    this.#t.logger.info('written', { id })
    return { id }
  }
}
