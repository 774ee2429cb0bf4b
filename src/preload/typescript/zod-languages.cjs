// zod's languages, each loaded when it is asked for: zod loads all fifty at its start, a megabyte of each thread, of which a service needs one, if any.
const { readdirSync } = require('node:fs')
const { Module } = require('node:module')
const { dirname, join } = require('node:path')

/** zod's list of them. */
const LIST = join('/zod/v4/locales/index.cjs')
/** A language in the folder of the list. */
const LANGUAGE = /^(?!index)([\w-]+)\.cjs$/

exports.loadLanguagesOnDemand = () => {
  const load = Module._extensions['.js']
  Module._extensions['.js'] = (module, path) => (path.endsWith(LIST) ? list(module, path) : load(module, path))
}

/** The list cannot be changed, as zod's own. */
function list(module, path) {
  Object.defineProperty(module.exports, '__esModule', { value: true })
  for (const file of readdirSync(dirname(path))) {
    const [, language] = LANGUAGE.exec(file) ?? []
    if (language === undefined) continue
    const get = () => {
      const own = module.require(`./${file}`)
      return own.default ?? own
    }
    Object.defineProperty(module.exports, language.replaceAll('-', ''), { enumerable: true, get })
  }
  Object.freeze(module.exports)
}
