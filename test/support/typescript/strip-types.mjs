import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { threadId } from 'node:worker_threads'

/** Not in the folder for temporary files: tests choose that one themselves. */
const FOLDER = fileURLToPath(new URL('../../../node_modules/.cache/heddle-tests/', import.meta.url))
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
  const file = FOLDER + createHash('sha1').update(`${path}\n${text}`).digest('hex')
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // Not stripped yet.
  }
  esbuild ??= createRequire(createRequire(import.meta.url).resolve('tsx'))('esbuild')
  const { code } = esbuild.transformSync(text, { ...OPTIONS, sourcefile: path })
  // Whole or not at all: another process may read it meanwhile.
  const fresh = `${file}.${process.pid}.${threadId}`
  writeFileSync(fresh, code)
  renameSync(fresh, file)
  return code
}
