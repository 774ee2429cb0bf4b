const { existsSync } = require('node:fs')
const { join } = require('node:path')

const SOURCE = join(__dirname, '..')
/** False in the repository, whose sources are TypeScript; true in the package, where they are compiled. */
const isCompiled = !existsSync(join(SOURCE, 'main.ts'))
const ENDING = isCompiled ? 'js' : 'ts'

/** A source file of the runtime. @param path below `src/`, without its ending */
const sourceFile = (path) => join(SOURCE, `${path}.${ENDING}`)

module.exports = { isCompiled, sourceFile }
