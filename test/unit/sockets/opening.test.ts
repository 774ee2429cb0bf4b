import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Exchange } from '../../../src/primary/http/exchange.ts'
import type { ClientResponse, LibrarySocket, SocketUserData } from '../../../src/primary/http/library.ts'

const ignored = (): void => {}
const WORKER = { socketMessage: () => true, socketFlushed: ignored, socketClosed: ignored }

/** A handshake that is accepted, with what the library does then. */
function accepted(onUpgrade: (user: SocketUserData) => void): unknown {
  const res = {
    onAborted: ignored,
    writeStatus: () => res,
    writeHeader: () => res,
    upgrade: onUpgrade,
  }
  const exchange = new Exchange(res as unknown as ClientResponse, 'req_1', 'GET', '/talk', null, '', null)
  exchange.handshake = { key: '', context: { own: {}, cork: (write) => write() }, limitBytes: 1024 }
  return exchange.acceptSocket(WORKER, 1, '')
}

test('a socket that ends in the middle of its handshake is one that nobody has', () => {
  const ws = {} as LibrarySocket
  const whole = accepted(({ socket }) => socket.opened(ws))
  assert.notEqual(whole, null)
  const cut = accepted(({ socket }) => {
    socket.opened(ws)
    socket.closed(1006, '')
  })
  assert.equal(cut, null)
  assert.equal(accepted(ignored), null)
})
