import { Plugin, type Socket, type Tools } from '#heddle'

export default class TalkFromPrimary extends Plugin {
  static override thread = 'primary' as const
  #http

  constructor({ http }: Tools) {
    super()
    this.#http = http
  }

  override onBoot() {
    this.#http.addWebSocket('/primary', { open: this.greet, message: this.echo })
  }

  greet(socket: Socket) {
    socket.send('hello')
  }

  echo(socket: Socket, message: string | Uint8Array) {
    if (message === 'throw') throw new Error('said so in the primary')
    socket.send(message)
  }
}
