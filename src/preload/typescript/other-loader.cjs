// What is left to tsx.
const { Module } = require('node:module')
const { tmpdir } = require('node:os')
const { join } = require('node:path')
const { isMainThread } = require('node:worker_threads')
const { faultOf, isApplication } = require('../kept-folder.cjs')
const { TextFault, readCode } = require('../text-file.cjs')

/** Languages and kinds of modules that are not read here. */
const EXTENSIONS = ['.tsx', '.jsx']
/** An application's JavaScript may be ES modules, which import TypeScript. */
const JAVASCRIPT = '.js'
/** Node takes a file with any ending that it does not know for JavaScript. */
const NO_CODE = /\.(?![cm]?js$)\w+$/
const ALL = [...EXTENSIONS, JAVASCRIPT, '.cjs', '.mjs', '.ts', '.mts', '.cts']
/** Options of a tsconfig.json that change what a file means when it runs. */
const OPTIONS =
  /"(?:extends|paths|baseUrl|experimentalDecorators|emitDecoratorMetadata|useDefineForClassFields|allowJs|jsx\w*)"\s*:|"target"\s*:\s*"es(?:[3-9]|20(?:1\d|2[01]))"/i

/** tsx, loaded when an application has something that plain stripping of types does not cover. */
class OtherLoader {
  #node
  #own
  #tsx = null
  #isWanted

  /** @param install puts the runtime's own loader into the place of Node's */
  install(install) {
    this.#node = hooksOf()
    install()
    for (const extension of EXTENSIONS) {
      Module._extensions[extension] = (module, path) => this.load(extension, module, path)
    }
    const loadJavaScript = Module._extensions[JAVASCRIPT]
    Module._extensions[JAVASCRIPT] = (module, path) => {
      if (!isApplication(path)) return loadJavaScript(module, path)
      if (NO_CODE.test(path)) throw noCode(path)
      this.load(JAVASCRIPT, module, path)
    }
    const loadJson = Module._extensions['.json']
    Module._extensions['.json'] = (module, path) => {
      requireText(path)
      loadJson(module, path)
    }
    this.#own = hooksOf()
  }

  /** True when the application's tsconfig.json asks for more than stripping. */
  get isWanted() {
    if (this.#isWanted === undefined) {
      try {
        const path = process.env.TSX_TSCONFIG_PATH ?? 'tsconfig.json'
        this.#isWanted = OPTIONS.test(readCode(path))
      } catch (error) {
        if (error instanceof TextFault) throw error
        // There is none.
        this.#isWanted = false
      }
    }
    return this.#isWanted
  }

  load(extension, module, path) {
    requireText(path)
    return this.#loaded().extensions[extension](module, path)
  }

  /** A name that may have another meaning for TypeScript: without its ending, or with that of what it is compiled to. @throws for what tsx does not find either */
  resolve(...request) {
    return this.#loaded().resolveFilename(...request)
  }

  /** It takes what it finds in Node for Node's own. */
  #loaded() {
    if (this.#tsx === null) {
      guardCache()
      put(this.#node)
      try {
        require('tsx/cjs')
        this.#tsx = hooksOf()
      } finally {
        put(this.#own)
      }
    }
    return this.#tsx
  }
}

/** Others replace what is not UTF-8, so that a text becomes another. @throws TextFault */
function requireText(path) {
  if (isApplication(path)) readCode(path)
}

const noCode = (path) =>
  Object.assign(new TypeError(`${path} is no code that can be imported`), { code: 'ERR_UNKNOWN_FILE_EXTENSION' })

const hooksOf = () => ({
  extensions: Object.fromEntries(ALL.map((extension) => [extension, Module._extensions[extension]])),
  resolveFilename: Module._resolveFilename,
  compile: Module.prototype._compile,
})

function put({ extensions, resolveFilename, compile }) {
  for (const [extension, load] of Object.entries(extensions)) {
    if (load === undefined) delete Module._extensions[extension]
    else Module._extensions[extension] = load
  }
  Module._resolveFilename = resolveFilename
  Module.prototype._compile = compile
}

/**
 * Lets tsx keep compiled sources only where nobody else can write. It executes what lies in `tsx-<user id>` of the system's temporary folder,
 * and does not look at whose that is.
 */
function guardCache() {
  const userId = process.geteuid?.()
  // Lanes inherit the environment. Without user ids (Windows) the temporary folder is the user's own.
  if (!isMainThread || userId === undefined || process.env.TSX_DISABLE_CACHE) return
  const fault = faultOf(join(tmpdir(), `tsx-${userId}`))
  if (fault === null) return
  process.env.TSX_DISABLE_CACHE = '1'
  process.emitWarning(`Compiled sources are not kept, so that starts are slower: ${fault}`, 'TranspilerCacheWarning')
}

module.exports = { guardCache, OtherLoader }
