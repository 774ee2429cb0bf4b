const { createHash } = require('node:crypto')
const { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { basename, join } = require('node:path')
const { threadId } = require('node:worker_threads')

const ROOT = join(__dirname, '../../../')
/** Not in the folder for temporary files: tests choose that one themselves. */
const FOLDER = join(ROOT, 'node_modules/.cache/heddle-tests/')
/** For files that tests write: every thread of every process that they start loads them. */
const WRITTEN = join(FOLDER, 'written/')
const WRITTEN_KEPT_MS = 3_600_000
const OPTIONS = {
  loader: 'ts',
  format: 'cjs',
  target: 'node20',
  platform: 'node',
  sourcemap: 'inline',
  sourcesContent: false,
  tsconfigRaw: { compilerOptions: { target: 'es2023', verbatimModuleSyntax: true } },
  // `import()` would ask a loader that knows no TypeScript.
  supported: { 'dynamic-import': false },
  define: {
    'import.meta.url': 'importMetaUrl',
    'import.meta.resolve': 'importMetaResolve',
    'import.meta.dirname': '__dirname',
    'import.meta.filename': '__filename',
  },
}
/** What a module knows of itself, for those that ask. */
const BANNER = `const importMetaUrl = require('node:url').pathToFileURL(__filename).href,
    importMetaResolve = (name) => require(${JSON.stringify(join(__dirname, 'resolve.mjs'))}).resolve(name.startsWith('.') ? new URL(name, importMetaUrl).href : name);`

/** What a kept text depends on, beside its own. */
const AS_TEXT = JSON.stringify([OPTIONS, BANNER])

mkdirSync(WRITTEN, { recursive: true })
let esbuild

/** The text of a TypeScript file as a CommonJS module. It depends on the file's name, not on its folder: it is kept for copies of a checkout, too. */
exports.strip = (path, text) => {
  const name = nameOf(path, text)
  const known = read(FOLDER + name) ?? (path.startsWith(ROOT) ? null : read(WRITTEN + name))
  if (known !== null) return known
  const code = transform(path, text)
  keep((path.startsWith(ROOT) ? FOLDER : WRITTEN) + name, code)
  return code
}

/** Strips files of the project by one process of esbuild: a thread that loads one that is not stripped starts one for it. */
exports.stripAhead = async (paths) => {
  const kept = new Set(readdirSync(FOLDER))
  const files = paths.map((path) => ({ path, text: readFileSync(path, 'utf8') }))
  const fresh = files.filter(({ path, text }) => !kept.has(nameOf(path, text)))
  if (fresh.length === 0) return
  const { stop, transform } = loadEsbuild()
  const stripOne = async ({ path, text }) => {
    const { code } = await transform(text, optionsOf(text, basename(path)))
    keep(FOLDER + nameOf(path, text), code)
  }
  // What has a fault says so when it is loaded.
  await Promise.allSettled(fresh.map(stripOne))
  await stop()
}

/** Removes what is kept of files that tests wrote some time ago: they may be different ones each time. */
exports.forgetWritten = () => {
  for (const name of readdirSync(WRITTEN)) {
    const { mtimeMs } = statSync(WRITTEN + name, { throwIfNoEntry: false }) ?? {}
    if (mtimeMs < Date.now() - WRITTEN_KEPT_MS) rmSync(WRITTEN + name, { force: true })
  }
}

function transform(path, text) {
  const { transformSync } = loadEsbuild()
  try {
    return transformSync(text, optionsOf(text, basename(path))).code
  } catch {
    // A fault names the whole path.
    return transformSync(text, optionsOf(text, path)).code
  }
}

function optionsOf(text, sourcefile) {
  return { ...OPTIONS, banner: text.includes('import.meta') ? BANNER : '', sourcefile }
}

/** Without the thread that it starts for many files: here it is one or two. */
function loadEsbuild() {
  if (esbuild === undefined) {
    const threads = process.env.ESBUILD_WORKER_THREADS
    process.env.ESBUILD_WORKER_THREADS = '0'
    esbuild = createRequire(require.resolve('tsx'))('esbuild')
    if (threads === undefined) delete process.env.ESBUILD_WORKER_THREADS
    else process.env.ESBUILD_WORKER_THREADS = threads
  }
  return esbuild
}

function nameOf(path, text) {
  return createHash('sha1')
    .update(`${AS_TEXT}\n${basename(path)}\n${text}`)
    .digest('hex')
}

function read(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Not stripped yet.
    return null
  }
}

/** Whole or not at all: another process may read it meanwhile. */
function keep(file, code) {
  const fresh = `${file}.${process.pid}.${threadId}`
  writeFileSync(fresh, code)
  renameSync(fresh, file)
}
