// Handshakes whose memory is taken again as soon as it is freed: none of them is cut off.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { readHead, requestText } from '../../support/raw-client.ts'
import { frameOf, HANDSHAKE, OPCODE } from '../../support/web-socket.ts'
import { shareTalk } from './support.ts'

/** `HANDSHAKES=200000 npm test sockets/handshakes` makes more of them. */
const HANDSHAKES = Number(process.env.HANDSHAKES ?? 2_000)
const AT_ONCE = 8

// glibc fills what is freed: with this byte the flags that the library would read close the connection.
const service = shareTalk({ lanes: 1, env: { MALLOC_PERTURB_: '16' } })

/** True when the socket has answered a message after its handshake. */
async function isServed(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    socket.write(requestText('GET', '/talk/a', HANDSHAKE))
    const head = await readHead(socket)
    assert.match(head, /^HTTP\/1\.1 101 /)
    let received = head.slice(head.indexOf('\r\n\r\n') + 4)
    socket.on('data', (bytes: Buffer) => {
      received += bytes.toString('latin1')
    })
    socket.resume()
    socket.write(frameOf(OPCODE.TEXT, 'still there?'))
    const ended = once(socket, 'end').then(() => true)
    while (!received.includes('still there?'))
      if ((await Promise.race([once(socket, 'data'), ended])) === true) return false
    return true
  } finally {
    socket.destroy()
  }
}

test('a socket stays open whatever its handshake finds in memory that is free', async () => {
  const heddle = service()
  let left = HANDSHAKES
  let cutOff = 0
  const client = async (): Promise<void> => {
    while (left-- > 0) if (!(await isServed(heddle.port))) cutOff++
  }
  await Promise.all(Array.from({ length: AT_ONCE }, client))
  assert.equal(cutOff, 0, `of ${HANDSHAKES} handshakes`)
  assert.deepEqual(heddle.errors, [])
})
