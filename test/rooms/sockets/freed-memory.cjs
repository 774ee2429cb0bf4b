// Loaded before the service: takes memory, with bytes that are flags to the listener's library, in the middle of each handshake. Other parts
// of a process do the same by chance.
const { add } = Set.prototype
Set.prototype.add = function (value) {
  if (value?.constructor?.name === 'ClientSocket') {
    globalThis.taken = Array.from({ length: 4 }, () => Buffer.allocUnsafeSlow(72).fill(0x17))
  }
  return add.call(this, value)
}
