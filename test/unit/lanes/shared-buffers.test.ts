import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSharedArrayBuffer } from 'node:util/types'
import { SharedBuffers } from '../../../src/lane/leaving.ts'
import { collectGarbage } from '../../../src/transport/memory/garbage.ts'

const MIB = 1 << 20
// Its types are a browser's.
type Wasm = { Memory: new (of: object) => { grow(pages: number): void; buffer: ArrayBufferLike } }

const buffers = new SharedBuffers()

/** Made in a function of its own: no variable of the test keeps it. */
function makeSome(): void {
  class Own extends SharedArrayBuffer {}
  const own = new Own(MIB)
  const plain = new SharedArrayBuffer(MIB)
  assert.ok(own instanceof Own)
  assert.equal(plain.constructor, SharedArrayBuffer)
  for (const each of [own, plain]) {
    assert.ok(each instanceof SharedArrayBuffer && isSharedArrayBuffer(each))
    assert.equal(structuredClone(each).byteLength, MIB)
  }
  assert.equal(buffers.bytes, 2 * MIB)
  assert.equal(plain.slice(0, MIB / 2).byteLength, MIB / 2)
  assert.equal(buffers.bytes, 2.5 * MIB)
}

test('shared memory is counted while somebody has it, and is what it was', async () => {
  const before = new SharedArrayBuffer(MIB)
  buffers.watch()
  assert.ok(before instanceof SharedArrayBuffer)
  assert.equal(buffers.bytes, 0)
  assert.throws(() => (SharedArrayBuffer as unknown as () => void)(), TypeError)
  makeSome()
  const growing = new SharedArrayBuffer(0, { maxByteLength: MIB })
  const { Memory } = Reflect.get(globalThis, 'WebAssembly') as Wasm
  const shared = new Memory({ initial: 16, maximum: 64, shared: true })
  assert.equal(buffers.bytes, 3.5 * MIB)
  assert.equal(new Memory({ initial: 16 }).buffer.byteLength, MIB, 'V8 counts it')
  growing.grow(MIB / 2)
  shared.grow(16)
  buffers.look()
  assert.equal(buffers.bytes, 5 * MIB)
  await new Promise(setImmediate)
  collectGarbage()
  buffers.look()
  assert.equal(buffers.bytes, 2.5 * MIB, 'what nobody has any more is not counted')
  assert.equal(growing.byteLength + shared.buffer.byteLength, 2.5 * MIB)
})
