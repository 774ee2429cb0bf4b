const { scryptSync } = require('node:crypto')
const { parentPort } = require('node:worker_threads')

/**
 * A thread that derives keys, one at a time (`HashThreads`). Plain JavaScript, so that it starts without a loader: neither its start nor its work
 * needs libuv's thread pool.
 */
parentPort.on('message', ({ password, salt, keyBytes, N, r, p }) => {
  try {
    // By default Node refuses to use 32 MiB of memory, which N = 2^15 needs. Twice the need leaves room for overhead.
    parentPort.postMessage({ key: scryptSync(password, salt, keyBytes, { N, r, p, maxmem: 2 * 128 * r * (N + p) }) })
  } catch (error) {
    parentPort.postMessage({ fault: error.message })
  }
})
