import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, readFileSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { shareExchange } from '../support/exchange-service.ts'
import { temporaryFolder } from '../support/folder.ts'
import { isNodeListener } from '../support/listener.ts'
import { requestText } from '../support/raw-client.ts'
import { until } from '../support/until.ts'

/** What may be between a client and a handler that does not read: the window of the runtime, and the buffers of two sockets. */
const ON_THE_WAY_MAX_BYTES = 24 << 20
/** Of one write. */
const STEP_BYTES = 100_000
/** Of a large body, what the process may grow by. What was read of it is garbage until it is collected. */
const GROWN_MAX_SHARE = 0.45

describe('large bodies that are streamed', () => {
  const service = shareExchange()
  const noise = randomBytes(3_000_000)
  const folder = temporaryFolder({ after })

  const stateOf = async (key: string, call: 'asked' | 'set' = 'asked') =>
    (await service().json(`/lane/${call}-state?key=${key}`)).body

  for (const thread of ['/lane', '/primary']) {
    it(`wait with their client for a handler that does not read: ${thread}`, async () => {
      const key = `gate-${thread.slice(1)}`
      const socket = connect(service().port, '127.0.0.1')
      const answered = once(socket, 'data')
      const length = 20 * noise.byteLength
      socket.write(requestText('POST', `${thread}/uploads/gated/${key}`, { 'content-length': String(length) }))
      await until(() => stateOf(`began-${key}`), 'the handler')
      // As over a network: what comes as fast as memory is read on, paused or not.
      let written = 0
      const write = async (): Promise<void> => {
        for (let at = 0; at < length; at += STEP_BYTES) {
          const from = at % noise.byteLength
          const isTaken = socket.write(noise.subarray(from, from + STEP_BYTES))
          written += STEP_BYTES
          if (isTaken) await delay(1)
          else await once(socket, 'drain')
        }
      }
      const isWritten = write()
      const blockedAt = await standsStill(() => written)
      assert.ok(blockedAt < ON_THE_WAY_MAX_BYTES, `${blockedAt} bytes were taken`)
      await stateOf(`open-${key}`, 'set')
      const [answer] = await answered
      assert.match(String(answer), /\{"bytes":60000000\}$/)
      await isWritten
      socket.destroy()
    })
  }

  it('leave the memory of the process as it is, whatever their length', async (t) => {
    const { pid } = service().process
    const megabytes = isNodeListener ? 300 : 500
    const path = join(folder, 'large')
    const beforeBytes = residentBytes(pid!, 'VmRSS')
    // From now on VmHWM is the most since now.
    await writeFile(`/proc/${pid}/clear_refs`, '5')
    const hash = createHash('sha1')
    const socket = connect(service().port, '127.0.0.1')
    const length = String(megabytes * 1_000_000)
    socket.write(requestText('POST', `/lane/uploads/file?path=${path}`, { 'content-length': length }))
    const answered = once(socket, 'data')
    for (let n = 0; n < megabytes; n++) {
      const block = Buffer.from(noise.subarray(n, n + 1_000_000))
      hash.update(block)
      if (!socket.write(block)) await once(socket, 'drain')
      // A sender that leaves no gap is read on, paused or not, and refused in the end.
      if (n % 16 === 0) await delay(5)
    }
    assert.match(String((await answered)[0]), /^HTTP\/1\.1 200 /)
    const grownBytes = residentBytes(pid!, 'VmHWM') - beforeBytes
    t.diagnostic(`${Math.round(grownBytes / 1e6)} MB more at most`)
    assert.ok(grownBytes < GROWN_MAX_SHARE * megabytes * 1_000_000, `${grownBytes} bytes more`)
    const saved = createHash('sha1')
    for await (const piece of createReadStream(path)) saved.update(piece)
    assert.equal(saved.digest('hex'), hash.digest('hex'))
    await rm(path)
    socket.destroy()
  })
})

function residentBytes(pid: number, what: 'VmRSS' | 'VmHWM'): number {
  return 1024 * Number(new RegExp(`^${what}:\\s*(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1])
}

/** The value, when it has not changed for a while. */
async function standsStill(value: () => number): Promise<number> {
  let last = -1
  while (value() !== last) {
    last = value()
    await delay(300)
  }
  return last
}
