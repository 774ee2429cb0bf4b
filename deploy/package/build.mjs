// What `npm pack` runs first: `src`, `workers` and the system domain become JavaScript in `dist/`, with the types that applications see, and source maps.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync } from 'node:zlib'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const require = createRequire(import.meta.url)
const { transform } = require('esbuild')
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
/** What applications import. `deploy/package/manifest.mjs` says by which names. */
const ENTRIES = ['src/index', 'src/devtools/testing/index', 'src/adapters/kysely', 'src/adapters/drizzle']
/** Their types are those of other packages, which have them once for ES modules and once for CommonJS, and neither fit the other: so they are there twice. */
const ADAPTERS = 'src/adapters'
/** All maps, a line for each: as files of their own they would be a third of the package, and hardly anybody reads one. */
const MAPS = 'source-maps.jsonl.br'
/** Files of other packages for the pages of the system domain, and where they are put. */
const LIBRARIES = {
  'lit-html/lit-html.js': 'lit-html.js',
  'lit-html/LICENSE': 'lit-html.LICENSE',
  'uplot/dist/uPlot.esm.js': 'uPlot.esm.js',
  'uplot/dist/uPlot.min.css': 'uPlot.min.css',
  'uplot/LICENSE': 'uplot.LICENSE',
}
const LIBRARIES_FOLDER = 'domains/system/libraries'
const FOR_BROWSERS = /^domains\/system\/(?:assets|libraries)\/.*\.(js|css)$/
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
  define: {
    'import.meta.url': 'importMetaUrl',
    'import.meta.resolve': 'importMetaResolve',
    'import.meta.dirname': '__dirname',
    'import.meta.filename': '__filename',
  },
  tsconfigRaw: { compilerOptions: { target: 'es2023', verbatimModuleSyntax: true } },
}
/** What a module knows of itself, for those that ask. */
const BANNER = `const importMetaUrl = require('node:url').pathToFileURL(__filename).href, importMetaResolve = (name) => require('node:url').pathToFileURL(require.resolve(name)).href;`

/** Compiles everything into a folder. @param {string} dist absolute; what is in it is removed */
async function build(dist) {
  rmSync(dist, { recursive: true, force: true })
  const files = [...FOLDERS.flatMap(filesOf), ...PAGES, ...filesOf(DEPLOYMENT).filter((file) => !IS_OWN.test(file))]
  const maps = await Promise.all(files.map((file) => (isCompiled(file) ? compile(file, dist) : copy(file, dist))))
  for (const [from, name] of Object.entries(LIBRARIES)) {
    await copy(join('node_modules', from), dist, join(LIBRARIES_FOLDER, name))
  }
  writeFileSync(join(dist, MAPS), brotliCompressSync(maps.filter((map) => map !== undefined).join('')))
  declare(dist)
  addModules(dist)
}

const filesOf = (folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .filter((file) => !file.startsWith(PICTURES))

/** The system domain stays as it is: plugins like those of the application, which the lint reads. So does what becomes part of a client. */
const isCompiled = (file) =>
  file.endsWith('.ts') && !file.startsWith('domains/') && file !== 'src/devtools/client/core.ts'

/** @returns the line of its map; undefined for a module of types alone, of which nothing is left */
async function compile(file, dist) {
  const path = file.replace(/\.ts$/, '.js')
  const text = readFileSync(join(ROOT, file), 'utf8')
  const { format, sourcemap, ...typesAlone } = OPTIONS
  if ((await transform(text, { ...typesAlone, legalComments: 'none' })).code === '') return undefined
  // Beside `dist/`, wherever that is made.
  const sourcefile = relative(dirname(join('dist', file)), file)
  const { code, map } = await transform(text, {
    ...OPTIONS,
    banner: text.includes('import.meta') ? BANNER : '',
    sourcefile,
    sourcesContent: false,
  })
  // A file of the runtime is named in `require('./x.ts')` and in `new URL('./x.ts', …)`.
  const javaScript = code.replace(/\b(require|new URL)\("(\.{1,2}\/[^"\n]+)\.ts"/g, '$1("$2.js"')
  writeFileSync(place(dist, path), plainExports(javaScript))
  const { version, sources, mappings } = JSON.parse(map)
  return `${JSON.stringify([path, { version, sources, names: [], mappings }])}\n`
}

/** What browsers load is made short. */
async function copy(file, dist, to = file) {
  const loader = FOR_BROWSERS.exec(to)?.[1]
  if (loader === undefined) return cpSync(join(ROOT, file), place(dist, to))
  const { code } = await transform(readFileSync(join(ROOT, file), 'utf8'), { loader, minify: true })
  writeFileSync(place(dist, to), code)
}

function place(dist, file) {
  const target = join(dist, file)
  mkdirSync(dirname(target), { recursive: true })
  return target
}

/** The types that an application sees, by the compiler of the project: those of its imports, and what these name. */
function declare(dist) {
  const compiler = require.resolve('typescript/package.json').replace('package.json', 'bin/tsc')
  const all = mkdtempSync(join(tmpdir(), 'heddle-types-'))
  const options = ['--noEmit', 'false', '--declaration', '--emitDeclarationOnly', '--rootDir', ROOT, '--outDir', all]
  const { status, stdout } = spawnSync(process.execPath, [compiler, '-p', import.meta.dirname, ...options], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`The types cannot be written:\n${stdout}`)
  const waiting = [...ENTRIES]
  const seen = new Set()
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (seen.has(name) || !existsSync(join(all, `${name}.d.ts`))) continue
    seen.add(name)
    const text = readFileSync(join(all, `${name}.d.ts`), 'utf8')
    writeFileSync(place(dist, `${name}.d.ts`), text)
    if (name.startsWith(`${ADAPTERS}/`)) {
      const asModule = text.replace(/'(\.\/[^']+)\.ts'/g, "'$1.mts'")
      writeFileSync(place(dist, `${name}.d.mts`), asModule)
    }
    for (const [, path] of text.matchAll(/(?:from |import\()['"](\.{1,2}\/[^'"]+)\.ts['"]/g)) {
      waiting.push(join(dirname(name), path))
    }
  }
  rmSync(all, { recursive: true })
}

/** What ES modules import of the adapters: the same module as everybody's, under types that fit theirs. */
function addModules(dist) {
  for (const entry of ENTRIES.filter((name) => name.startsWith(`${ADAPTERS}/`))) {
    const text = readFileSync(join(ROOT, `${entry}.ts`), 'utf8')
    const own = [...text.matchAll(/^export (?:async )?(?:function|class|const) (\w+)/gm)].map(([, name]) => name)
    const others = [...text.matchAll(/^export \{([^}]*)\} from/gm)].flatMap(([, names]) => names.split(','))
    const names = [...own, ...others.map((name) => name.trim()).filter((name) => !name.startsWith('type '))]
    const module = `import adapter from './${entry.split('/').at(-1)}.js'\n\nexport const { ${names.join(', ')} } = adapter\n`
    writeFileSync(join(dist, `${entry}.mjs`), module)
  }
}

await build(resolve(process.argv[2] ?? join(ROOT, 'dist')))
