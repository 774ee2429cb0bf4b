const { readFileSync } = require('node:fs')
const nodeModule = require('node:module')
const { fileURLToPath } = require('node:url')
const { isMainThread } = require('node:worker_threads')

const { Module } = nodeModule

// A domain outside of the repository imports the runtime by name.
const HEDDLE_NAME = '../../../src/preload/heddle-name.cjs'

/**
 * What `--import tsx` is to the service, for tests and the processes that they start: hundreds, most of whose time was tsx.
 * On Node 20 every thread loads what it runs with `require`, as tsx has it in worker threads there: types are stripped once and kept, and
 * no thread is needed that loads modules for another. A module with a top-level `await` cannot be loaded so.
 * On other versions, and with TEST_LOADER=tsx, it is tsx.
 */
if (!process.versions.node.startsWith('20.') || process.env.TEST_LOADER === 'tsx') {
  // What tsx keeps must be this user's.
  require('../../../src/preload/transpiler-cache.cjs')
  require(HEDDLE_NAME)
  require('tsx')
} else {
  // The hook for `import` costs a thread of Node, a sixth of the start of a process, and nothing is loaded with it.
  const { register } = nodeModule
  nodeModule.register = () => {}
  require(HEDDLE_NAME)
  nodeModule.register = register
  const { strip } = require('./strip.cjs')
  const { add, nameLines } = require('./stack-lines.cjs')
  const { loadKept } = require('./load-kept.cjs')
  const { resolveOwn } = require('./resolve-own.cjs')
  nameLines()
  Module._extensions['.ts'] = (module, path) => {
    const text = strip(path, readFileSync(path, 'utf8'))
    add(path, text)
    module._compile(text, path)
  }
  loadKept()
  const resolveFilename = Module._resolveFilename
  Module._resolveFilename = (request, parent, ...rest) =>
    resolveOwn(request, parent) ??
    resolveFilename(request.startsWith('file:') ? fileURLToPath(request) : request, parent, ...rest)
  if (isMainThread) {
    const { runMain } = Module
    Module.runMain = (entry = process.argv[1]) =>
      /\.[ct]s$/.test(entry) ? Module._load(entry, null, true) : runMain(entry)
  }
}
