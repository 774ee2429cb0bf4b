import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { threadId } from 'node:worker_threads'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
/** Not in the folder for temporary files: tests choose that one themselves. */
const FOLDER = `${ROOT}node_modules/.cache/heddle-tests/`
const OPTIONS = {
  loader: 'ts',
  format: 'esm',
  target: 'node20',
  keepNames: true,
  sourcemap: 'inline',
  sourcesContent: false,
  tsconfigRaw: { compilerOptions: { target: 'es2023', verbatimModuleSyntax: true } },
}
const TYPESCRIPT = /^file:.*\.ts(?:\?|$)/

mkdirSync(FOLDER, { recursive: true })
let esbuild

export async function load(url, context, next) {
  if (!TYPESCRIPT.test(url)) return next(url, context)
  const path = fileURLToPath(url)
  const text = readFileSync(path, 'utf8')
  return { format: 'module', source: stripped(path, text), shortCircuit: true }
}

function stripped(path, text) {
  // A file that a test has written is read once.
  if (!path.startsWith(ROOT)) return strip(path, text)
  const file = FOLDER + createHash('sha1').update(`${path}\n${text}`).digest('hex')
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Not stripped yet.
  }
  const code = strip(path, text)
  // Whole or not at all: another process may read it meanwhile.
  const fresh = `${file}.${process.pid}.${threadId}`
  writeFileSync(fresh, code)
  renameSync(fresh, file)
  return code
}

function strip(path, text) {
  esbuild ??= createRequire(createRequire(import.meta.url).resolve('tsx'))('esbuild')
  return esbuild.transformSync(text, { ...OPTIONS, sourcefile: path }).code
}
