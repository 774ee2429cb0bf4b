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
  const name = basename(path)
  const file =
    (path.startsWith(ROOT) ? FOLDER : WRITTEN) + createHash('sha1').update(`${AS_TEXT}\n${name}\n${text}`).digest('hex')
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Not stripped yet.
  }
  const code = transform(path, text)
  // Whole or not at all: another process may read it meanwhile.
  const fresh = `${file}.${process.pid}.${threadId}`
  writeFileSync(fresh, code)
  renameSync(fresh, file)
  return code
}

/** Removes what is kept of files that tests wrote some time ago: they may be different ones each time. */
exports.forgetWritten = () => {
  for (const name of readdirSync(WRITTEN)) {
    const { mtimeMs } = statSync(WRITTEN + name, { throwIfNoEntry: false }) ?? {}
    if (mtimeMs < Date.now() - WRITTEN_KEPT_MS) rmSync(WRITTEN + name, { force: true })
  }
}

function transform(path, text) {
  esbuild ??= createRequire(require.resolve('tsx'))('esbuild')
  const banner = text.includes('import.meta') ? BANNER : ''
  const as = (sourcefile) => esbuild.transformSync(text, { ...OPTIONS, banner, sourcefile }).code
  try {
    return as(basename(path))
  } catch {
    // A fault names the whole path.
    return as(path)
  }
}
