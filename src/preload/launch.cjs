// How the runtime is started: on a Node that can run it, from its sources or compiled, by which loader, and with which arguments of Node. Any start loads
// this first: what comes after may not even be readable for a Node that is too old.
const { existsSync } = require('node:fs')
const { join, resolve, sep } = require('node:path')

/** As `engines` of the packed manifest says: `deploy/package/manifest.mjs`. */
const WANTED = '22.15 or later, 24 or 26'
const EXIT_CONFIG = 78
/** `heddle create` runs on an older one, too: what it writes brings the right one along. */
const CREATES = /[\\/]heddle(?:\.cjs)? create$/

const [major, minor] = process.versions.node.split('.').map(Number)
const isFit = major > 23 || (major === 22 && minor >= 15)
if (!isFit && !CREATES.test(process.argv.slice(1, 3).join(' '))) {
  console.error(
    `heddle needs Node ${WANTED}: this is Node ${process.versions.node}. Start it by npm (npm start, npm run dev), which takes the Node of node_modules/.bin; in an application that has none: npm install node-${process.platform}-${process.arch}@22`,
  )
  process.exit(EXIT_CONFIG)
}

const SOURCE = join(__dirname, '..')
/** False in the repository, whose sources are TypeScript; true in the package, where they are compiled. */
const isCompiled = !existsSync(join(SOURCE, 'main.ts'))
const ENDING = isCompiled ? 'js' : 'ts'

/** A source file of the runtime. @param path below `src/`, without its ending */
const sourceFile = (path) => join(SOURCE, `${path}.${ENDING}`)

const TSX = /(?:^| )(?:--(?:import|require|loader)|-r)[ =](?:tsx|\S*\/tsx\/\S*)(?= |$)/
const PRELOADED = /(?:^| )(?:--(import|require|loader|experimental-loader)|-r)[ =]"?([^" ]+)/g
const OWN_FOLDERS = ['src', 'bench', 'test'].map((folder) => join(SOURCE, '..', folder) + sep)

const FLAGS = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ')
/** True when tsx is named on the command line, as for the tests of an application: then it loads everything, and the runtime's own loader nothing. */
const isTsx = TSX.test(FLAGS)
const preloaded = [...FLAGS.matchAll(PRELOADED)]
/** True when something is loaded before the runtime that is none of its own: it may change how modules are loaded. */
const hasAgents = preloaded.some(([, , path]) => !OWN_FOLDERS.some((folder) => resolve(path).startsWith(folder)))
/** True when Node has ES modules to load before the program. */
const hasImports = preloaded.some(([, kind]) => kind === 'import')

const PRELOAD = join(SOURCE, 'preload.cjs')
/** Node's arguments before every file of the runtime. */
const LOADER_ARGUMENTS = ['--require', PRELOAD]

module.exports = { hasAgents, hasImports, isCompiled, isTsx, LOADER_ARGUMENTS, PRELOAD, sourceFile }
