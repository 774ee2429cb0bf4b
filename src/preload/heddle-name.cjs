const { Module, registerHooks } = require('node:module')
const { pathToFileURL } = require('node:url')
const { isMainThread } = require('node:worker_threads')
const { isCompiled, isTsx, sourceFile } = require('./launch.cjs')

/**
 * Lets plugins import this runtime wherever their folder lies: `#heddle` and `heddle` are the runtime that has loaded them, and never a second one
 * that lies beside them.
 */
const PARTS = {
  heddle: 'index',
  'heddle/testing': 'devtools/testing/index',
  'heddle/kysely': 'adapters/kysely',
  'heddle/drizzle': 'adapters/drizzle',
}
const FILES = new Map()
for (const [name, path] of Object.entries(PARTS)) for (const mark of ['', '#']) FILES.set(mark + name, sourceFile(path))

const IS_ON = Symbol.for('heddle.name')

if (!globalThis[IS_ON]) {
  globalThis[IS_ON] = true
  nameRuntime()
}

function nameRuntime() {
  const resolveFilename = Module._resolveFilename
  Module._resolveFilename = (request, ...rest) => FILES.get(request) ?? resolveFilename(request, ...rest)

  // Without tsx everything is loaded with `require`; so it is by the compiled runtime, and by lanes.
  if (isTsx && isMainThread && !isCompiled) {
    const names = Object.fromEntries([...FILES].map(([name, file]) => [name, pathToFileURL(file).href]))
    registerHooks({
      resolve: (name, context, next) =>
        Object.hasOwn(names, name) ? { url: names[name], shortCircuit: true } : next(name, context),
    })
  }
}
