// What the guardian sees of a runtime, without one: says that it is guarded and serves, then does what FAKE says.
const guarded = {
  type: 'guarded',
  stopMs: 2000,
  stallMs: 2000,
  crashReportsDir: process.env.FAKE_REPORTS,
  crashReportsKept: 3,
}
const ways = {
  abort: () => process.abort(),
  /** Dies before it serves. */
  early: () => process.abort(),
  /** More than any pipe holds; then says that nobody made it wait. */
  shout: () => {
    const startedMs = Date.now()
    process.stderr.write('x'.repeat(4_000_000))
    process.stdout.write(`written in ${Date.now() - startedMs} ms\n`)
  },
  wait: () => process.stdout.write(`${process.pid}\n`),
  /** Its loop stands still, for longer than any test waits, and not for ever: it would not notice that its guardian is gone. */
  hang: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30_000),
}

const way = process.env.FAKE
process.send(guarded)
if (way !== 'early') process.send({ type: 'serving' })
process.send('ready')
process.on('disconnect', () => process.exit(9))
setInterval(() => process.send({ type: 'alive' }), 500)
setTimeout(ways[way], 20)
