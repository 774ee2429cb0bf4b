// What `npm pack` runs first: `src`, `workers` and the system domain become JavaScript in `dist/`, with types and source maps.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const require = createRequire(import.meta.url)
const { transform } = createRequire(require.resolve('tsx'))('esbuild')
const { plainExports } = require('../../src/preload/typescript/plain-exports.cjs')

/** The example domains are an application of the runtime, and no part of it. */
const FOLDERS = ['src', 'workers', 'domains/system']
/** What the guides and the pages of the tools lead to. All pages stand in `dist/` as they do here, so that their links hold. */
const PAGES = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'domains/README.md',
  'bench/README.md',
  'test/matrix/README.md',
  'test/shop/application/README.md',
]
/** Of pages that are read where the repository is. */
const PICTURES = 'src/guides/pictures/'
/** Their types are those of other packages, which have them once for ES modules and once for CommonJS, and neither fit the other. */
const TYPED_TWICE = 'src/adapters'
const DEPLOYMENT = 'deploy'
/** How heddle itself is packed and released. */
const IS_OWN = /^deploy\/(?:package|release)\//
/**
 * CommonJS, because a lane loads plugins with `require` alone, on every Node: so each module is there once, for the runtime and for plugins.
 * Plugins import it by name as they import an ES module.
 */
const OPTIONS = {
  loader: 'ts',
  format: 'cjs',
  platform: 'node',
  target: 'node20',
  sourcemap: 'external',
  // `import()` would make a second instance of a module on some versions of Node.
  supported: { 'dynamic-import': false },
  banner: `const importMetaUrl = require('node:url').pathToFileURL(__filename).href, importMetaResolve = (name) => require('node:url').pathToFileURL(require.resolve(name)).href;`,
  define: {
    'import.meta.url': 'importMetaUrl',
    'import.meta.resolve': 'importMetaResolve',
    'import.meta.dirname': '__dirname',
    'import.meta.filename': '__filename',
  },
  tsconfigRaw: { compilerOptions: { target: 'es2023', verbatimModuleSyntax: true } },
}

/** Compiles everything into a folder. @param {string} dist absolute; what is in it is removed */
async function build(dist) {
  rmSync(dist, { recursive: true, force: true })
  const files = [...FOLDERS.flatMap(filesOf), ...PAGES, ...filesOf(DEPLOYMENT).filter((file) => !IS_OWN.test(file))]
  await Promise.all(files.map((file) => (isCompiled(file) ? compile(file, dist) : copy(file, dist))))
  // Its own scope: the package beside it holds ES modules, as the sources are.
  const imports = {
    '#heddle': './src/index.js',
    '#heddle/testing': './src/devtools/testing/index.js',
    '#heddle/kysely': './src/adapters/kysely.js',
    '#heddle/drizzle': './src/adapters/drizzle.js',
  }
  writeFileSync(join(dist, 'package.json'), `${JSON.stringify({ type: 'commonjs', imports }, null, 2)}\n`)
  declare(dist)
}

const filesOf = (folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .filter((file) => !file.startsWith(PICTURES))

/** The system domain stays as it is: plugins like those of the application, which the lint reads. So does what becomes part of a client. */
const isCompiled = (file) =>
  file.endsWith('.ts') && !file.startsWith('domains/') && !file.startsWith('src/devtools/client/core/')

async function compile(file, dist) {
  const target = place(dist, file.replace(/\.ts$/, '.js'))
  // Beside `dist/`, wherever that is made.
  const sourcefile = relative(dirname(join('dist', file)), file)
  const text = readFileSync(join(ROOT, file), 'utf8')
  const { code, map } = await transform(text, { ...OPTIONS, sourcefile })
  // A file of the runtime is named in `require('./x.ts')` and in `new URL('./x.ts', …)`.
  const javaScript = code.replace(/\b(require|new URL)\("(\.{1,2}\/[^"\n]+)\.ts"/g, '$1("$2.js"')
  writeFileSync(
    target,
    `${plainExports(javaScript)}\n//# sourceMappingURL=${file.split('/').at(-1).replace(/\.ts$/, '.js.map')}\n`,
  )
  const { sourcesContent: _, ...short } = JSON.parse(map)
  writeFileSync(`${target}.map`, JSON.stringify({ ...short, sourcesContent: [text] }))
}

function copy(file, dist) {
  cpSync(join(ROOT, file), place(dist, file))
}

function place(dist, file) {
  const target = join(dist, file)
  mkdirSync(dirname(target), { recursive: true })
  return target
}

/** The types, by the compiler of the project. */
function declare(dist) {
  const compiler = require.resolve('typescript/package.json').replace('package.json', 'bin/tsc')
  const options = ['--noEmit', 'false', '--declaration', '--emitDeclarationOnly', '--rootDir', ROOT, '--outDir', dist]
  const { status, stdout } = spawnSync(process.execPath, [compiler, '-p', import.meta.dirname, ...options], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`The types cannot be written:\n${stdout}`)
  const folder = join(dist, TYPED_TWICE)
  for (const name of readdirSync(folder).filter((each) => each.endsWith('.d.ts'))) {
    const text = readFileSync(join(folder, name), 'utf8')
    writeFileSync(join(folder, name.replace(/ts$/, 'mts')), text.replace(/'(\.\/[^']+)\.ts'/g, "'$1.mts'"))
  }
}

await build(resolve(process.argv[2] ?? join(ROOT, 'dist')))
