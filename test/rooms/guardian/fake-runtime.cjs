// What the guardian sees of a runtime, without one: says that it is guarded and serves, then does what FAKE says, or FAKE_<number> of one among several.
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
  /** Says what it is told; its new code is bad where FAKE_BAD is its number. */
  talk: () => {
    const { NODE_APP_INSTANCE, PROCESSES } = process.env
    const say = (what) => process.stdout.write(`${NODE_APP_INSTANCE} ${what} ${process.pid} of ${PROCESSES}\n`)
    process.on('SIGHUP', () => {
      say('reloads')
      setTimeout(() => {
        say('reloaded')
        process.send({ type: 'reloaded', ok: process.env.FAKE_BAD !== process.env.NODE_APP_INSTANCE })
      }, 200)
    })
    process.on('SIGTERM', () => {
      say('ends')
      process.send({ type: 'stopping' })
      setTimeout(() => process.exit(0), 100)
    })
    say('serves')
  },
  refuse: () => process.exit(78),
  /** Computes for longer than its limit, where it gets a tenth of a core. */
  toil: () => {
    const usedMs = () => process.resourceUsage().userCPUTime / 1000 + process.resourceUsage().systemCPUTime / 1000
    const startedMs = usedMs()
    while (usedMs() - startedMs < 600);
    process.stdout.write('done\n')
  },
  /** Computes for ever. */
  loop: () => {
    for (;;);
  },
  /** Its loop stands still, for longer than any test waits, and not for ever: it would not notice that its guardian is gone. */
  hang: () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 30_000),
}

const way = process.env[`FAKE_${process.env.NODE_APP_INSTANCE}`] ?? process.env.FAKE
process.send(guarded)
if (way !== 'early') process.send({ type: 'serving' })
if (way !== 'refuse') process.send('ready')
process.on('disconnect', () => process.exit(9))
setInterval(() => process.send({ type: 'alive' }), 500)
setTimeout(ways[way], 20)
