import { type EventMeta, Plugin, type Socket, type Tools } from '#heddle'

/** Answers as it is told to; tells all of its clients what becomes of the others. */
export default class TalkToClients extends Plugin {
  #bus
  #http
  readonly #sockets = new Set<Socket>()

  constructor({ event_bus, http }: Tools) {
    super()
    this.#bus = event_bus
    this.#http = http
  }

  override onBoot() {
    const { open, message, close } = this
    this.#http.addWebSocket('/talk/:room', { open, message, close })
    this.#http.addWebSocket('/members', { open, message, close }, { authValidator: this.#claims })
    this.#http.addWebSocket('/doors', { open: this.refuse })
    this.#bus.subscribe('talk.shouted', this.pass, { broadcast: true })
    this.#bus.subscribe('talk.heard', this.note)
  }

  readonly #claims = (token: string) => (token === 'good' ? { sub: 'ada' } : null)
  readonly #heard: unknown[] = []

  note(_data: object, { parent_id, request_id, emitter }: EventMeta) {
    this.#heard.push({ parent_id, request_id, emitter })
    for (const socket of this.#sockets) socket.send({ heard: { parent_id, request_id, emitter } })
  }

  async open(socket: Socket) {
    // What comes meanwhile waits.
    await new Promise((resolve) => setTimeout(resolve, 5))
    const { room, _auth, q } = socket.data
    socket.send({ room, _auth, q, id: socket.id })
    // It hears of the others afterwards.
    if (!socket.signal.aborted) this.#sockets.add(socket)
  }

  async message(socket: Socket, message: string | Uint8Array) {
    if (typeof message !== 'string') return void socket.send(message)
    const [command, argument = ''] = message.split(' ', 2)
    switch (command) {
      case 'shout':
        return void (await this.#bus.publish('talk.shouted', { text: argument }))
      case 'publish':
        return void (await this.#bus.publish('talk.heard', {}))
      case 'throw':
        throw new Error('said so')
      case 'bye':
        return socket.close(4001, 'bye')
      case 'flood':
        return this.#flood(socket, Number(argument))
      case 'pour':
        return this.#pour(socket, Number(argument))
      case 'wait':
        await new Promise((resolve) => setTimeout(resolve, Number(argument)))
        break
      case 'stall':
        for (;;);
      case 'exit':
        process.exit(1)
    }
    socket.send(message)
  }

  /** Heedless of room. */
  async #flood(socket: Socket, messages: number) {
    for (let n = 0; n < messages && !socket.signal.aborted; n++) {
      socket.send('x'.repeat(10_000))
      if (n % 10 === 9) await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }

  /** As fast as the client reads. */
  async #pour(socket: Socket, messages: number) {
    let waits = 0
    for (let n = 0; n < messages && !socket.signal.aborted; n++) {
      if (socket.send('x'.repeat(10_000))) continue
      waits++
      await socket.drained()
    }
    socket.send(`poured ${waits}`)
  }

  close(socket: Socket, code: number, reason: string) {
    this.#sockets.delete(socket)
    for (const other of this.#sockets) other.send({ left: code, reason, aborted: socket.signal.aborted })
  }

  refuse(socket: Socket) {
    socket.close(1008, 'not today')
  }

  pass({ text }: { text: string }) {
    for (const socket of this.#sockets) socket.send({ shouted: text })
  }
}
