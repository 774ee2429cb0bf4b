import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Server } from 'socket.io'
import { io } from 'socket.io-client'

export default () => {
  const server = createServer()
  new Server(server).on('connection', (socket) => socket.on('weave', (word, done) => done(word + word)))
  const listening = new Promise<number>((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)),
  )
  return async () => {
    const socket = io(`http://127.0.0.1:${await listening}`, { forceNew: true })
    const woven = await socket.timeout(5_000).emitWithAck('weave', 'warp')
    socket.close()
    return woven
  }
}
