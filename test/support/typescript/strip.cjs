const { createHash } = require('node:crypto')
const { mkdirSync, readFileSync, renameSync, writeFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { join } = require('node:path')
const { threadId } = require('node:worker_threads')

const ROOT = join(__dirname, '../../../')
/** Not in the folder for temporary files: tests choose that one themselves. */
const FOLDER = join(ROOT, 'node_modules/.cache/heddle-tests/')
const OPTIONS = {
  loader: 'ts',
  target: 'node20',
  platform: 'node',
  keepNames: true,
  sourcemap: 'inline',
  sourcesContent: false,
  tsconfigRaw: { compilerOptions: { target: 'es2023', verbatimModuleSyntax: true } },
}
const FORMATS = {
  esm: { format: 'esm' },
  // As tsx does it: what a module knows of itself, and `import()`, which would ask a loader that knows no TypeScript.
  cjs: {
    format: 'cjs',
    supported: { 'dynamic-import': false },
    banner: "const importMetaUrl = require('node:url').pathToFileURL(__filename).href;",
    define: {
      'import.meta.url': 'importMetaUrl',
      'import.meta.dirname': '__dirname',
      'import.meta.filename': '__filename',
    },
  },
}

mkdirSync(FOLDER, { recursive: true })
let esbuild

/** The text of a TypeScript file without its types, as a module of that format. */
exports.strip = (path, text, format) => {
  // A file that a test has written is read once.
  if (!path.startsWith(ROOT)) return transform(path, text, format)
  const file = FOLDER + createHash('sha1').update(`${format}\n${path}\n${text}`).digest('hex')
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Not stripped yet.
  }
  const code = transform(path, text, format)
  // Whole or not at all: another process may read it meanwhile.
  const fresh = `${file}.${process.pid}.${threadId}`
  writeFileSync(fresh, code)
  renameSync(fresh, file)
  return code
}

function transform(path, text, format) {
  esbuild ??= createRequire(require.resolve('tsx'))('esbuild')
  return esbuild.transformSync(text, { ...OPTIONS, ...FORMATS[format], sourcefile: path }).code
}
