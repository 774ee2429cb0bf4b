// Notes in a file what plugins use of that which LANE_PERMISSIONS can keep from them: for `heddle permissions`, whose tests load this first.
const { subscribe } = require('node:diagnostics_channel')
const { appendFileSync } = require('node:fs')
const { join, relative, resolve } = require('node:path')
const { isMainThread } = require('node:worker_threads')
const { ROOT, SOURCE } = require('./kept-folder.cjs')

/** Node tells what it would have asked for in these, `--permission-audit`. Of addons it tells nothing on Node 24. */
const CHANNELS = ['fs', 'child', 'worker', 'net']
const ITEMS = {
  FileSystemRead: 'fs-read',
  FileSystemWrite: 'fs-write',
  ChildProcess: 'child',
  WorkerThreads: 'worker',
  Net: 'net',
}
const FRAMES = 200
const FRAME = /(?:\(|at (?:async )?)(?:file:\/\/)?(\/[^()]*?):\d+:\d+\)?$/gm
/** They stand between whoever asks for a file, a process or a module and Node. */
const BETWEEN = ['preload/', 'lane/leaving', 'lane/child-processes']
/** As they are loaded, and as source maps name them. */
const OWN = [SOURCE, join(ROOT, 'src/')]
const PACKAGE = /.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/
const TESTS = `${resolve('test')}/`

const seen = new Set()
let isNoting = false

exports.audit = (file) => {
  // Node would hand them on to whatever a test starts, and its primary thread would be bound.
  if (isMainThread) process.execArgv = process.execArgv.filter((flag) => !/^--(?:permission|allow-)/.test(flag))
  const note = (item, resource = '') => {
    // To write it down uses a file, too.
    if (item === undefined || isNoting) return
    isNoting = true
    try {
      const by = whoAsks(item)
      if (by === null) return
      const path = item.startsWith('fs') ? resolve(String(resource)) : undefined
      const line = JSON.stringify({ item, path, by })
      if (!seen.has(line)) appendFileSync(file, `${line}\n`)
      seen.add(line)
    } finally {
      isNoting = false
    }
  }
  for (const name of CHANNELS)
    subscribe(`node:permission-model:${name}`, ({ permission, resource }) => note(ITEMS[permission], resource))
  const { dlopen } = process
  process.dlopen = (...args) => {
    note('addons')
    return dlopen.apply(process, args)
  }
}

/** @returns {string | null} the file of the application, or the package; null for the runtime itself, for Node, and for a test */
function whoAsks(item) {
  const { stackTraceLimit } = Error
  // Frozen builtins refuse an assignment.
  Reflect.set(Error, 'stackTraceLimit', FRAMES)
  const { stack } = new Error('here')
  Reflect.set(Error, 'stackTraceLimit', stackTraceLimit)
  // For `package.json`, which may be missing.
  if (stack.includes('node:internal/modules/package_json_reader')) return null
  const isOwn = (file, parts = ['']) => OWN.some((folder) => parts.some((part) => file.startsWith(folder + part)))
  const files = [...stack.matchAll(FRAME)].map(([, file]) => file).filter((file) => !isOwn(file, BETWEEN))
  const [asking] = files
  // `fetch` goes on later, with nothing but Node on the stack.
  if (asking === undefined) return item === 'net' && !isMainThread ? 'a plugin' : null
  const caller = files.find((file) => isOwn(file) || !PACKAGE.test(file))
  // A package goes on later: in a lane for a plugin.
  if (caller === undefined) return isMainThread ? null : PACKAGE.exec(asking)[1]
  if (isOwn(caller) || caller.startsWith(TESTS) || /\.test\.[cm]?[jt]s$/.test(caller)) return null
  return relative('', caller)
}
