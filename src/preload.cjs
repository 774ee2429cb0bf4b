// Every start preloads this file (`--require`), in each of its threads: it sizes the thread pool, keeps addons, and loads TypeScript.
const { isTsx } = require('./preload/launch.cjs')
const { availableParallelism } = require('node:os')
const { isMainThread } = require('node:worker_threads')

/**
 * Of libuv's pool, which file, DNS and cryptography calls of all threads share. The size counts only if it is set before the pool's first use, and the
 * TypeScript loader uses it. A thread that waits costs next to nothing, and a call that hangs takes one away for as long as it hangs: so there are
 * many more than cores.
 */
const MIN_THREADS = 16
const THREADS_PER_CORE = 4
/** libuv takes no more. */
const MAX_THREADS = 1024

process.env.UV_THREADPOOL_SIZE ||= String(
  Math.min(MAX_THREADS, Math.max(MIN_THREADS, THREADS_PER_CORE * availableParallelism())),
)

if (!isMainThread) require('./preload/addons.cjs').keepAddons()
if (isTsx) require('./preload/typescript/other-loader.cjs').guardCache()
require('./preload/heddle-name.cjs')
if (!isTsx) require('./preload/typescript/register.cjs').register()
