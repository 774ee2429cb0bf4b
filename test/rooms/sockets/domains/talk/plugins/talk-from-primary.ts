import { plugin, type Socket } from '#heddle'

export default plugin(
  ({ http }) => {
    function greet(socket: Socket) {
      socket.send('hello')
    }

    function echo(socket: Socket, message: string | Uint8Array) {
      if (message === 'throw') throw new Error('said so in the primary')
      socket.send(message)
    }

    http.addWebSocket('/primary', { open: greet, message: echo })
  },
  { thread: 'primary' },
)
