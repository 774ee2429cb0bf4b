const { Module, registerHooks } = require('node:module')
const { pathToFileURL } = require('node:url')
const { isMainThread } = require('node:worker_threads')
const { isCompiled, isTsx, sourceFile } = require('./launch.cjs')

/**
 * Lets plugins import this runtime wherever their folder lies: `#heddle` and `heddle` are the runtime that has loaded them, and never a second one
 * that lies beside them.
 */
const MAIN = sourceFile('index')
const TESTING = sourceFile('devtools/testing/index')
const KYSELY = sourceFile('adapters/kysely')
const DRIZZLE = sourceFile('adapters/drizzle')
const FILES = new Map([
  ['#heddle', MAIN],
  ['heddle', MAIN],
  ['#heddle/testing', TESTING],
  ['heddle/testing', TESTING],
  ['#heddle/kysely', KYSELY],
  ['heddle/kysely', KYSELY],
  ['#heddle/drizzle', DRIZZLE],
  ['heddle/drizzle', DRIZZLE],
])

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
