import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Kind, kindOf } from './kinds.ts'

/** One process and the test files that it runs. */
export interface Job {
  kind: Kind
  files: readonly string[]
  /** The module that is started. */
  entry: string
}

/** Folders whose files take longest: what begins last should be short. */
const FIRST = [
  'package',
  'guides',
  'shop',
  'elastic',
  'event-log',
  'jobs',
  'chaos',
  'lanes',
  'deploy',
  'guardian',
  'hostile',
  'db',
  'users',
  'tracing',
  'docs',
].map((name) => `test/rooms/${name}/`)

/** What is to be run, in the order in which it begins. `processes` is how many share the files that run together. */
export function jobsOf(files: readonly string[], processes: number): Job[] {
  const byKind = new Map<Kind, string[]>()
  for (const file of files) {
    const kind = kindOf(file)
    byKind.set(kind, [...(byKind.get(kind) ?? []), file])
  }
  const single = (kind: Kind): Job[] =>
    (byKind.get(kind) ?? []).map((file) => ({ kind, files: [file], entry: resolve(file) }))
  const rank = ({ files: [file] }: Job): number => {
    const at = FIRST.findIndex((folder) => file!.startsWith(folder))
    return at < 0 ? FIRST.length : at
  }
  const own = single('process').sort((one, other) => rank(one) - rank(other))
  return [...own, ...bundles(byKind.get('together') ?? [], processes), ...single('alone')]
}

/** Deals the files out to processes. */
function bundles(files: readonly string[], processes: number): Job[] {
  if (files.length === 0) return []
  const folder = mkdtempSync(join(tmpdir(), 'heddle-test-bundles-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  return Array.from({ length: Math.min(processes, files.length) }, (_, index) => {
    const own = files.filter((_, at) => at % processes === index)
    const entry = join(folder, `${index + 1}.test.cjs`)
    writeFileSync(entry, bundleText(own))
    return { kind: 'together', files: own, entry }
  })
}

/** A file that cannot be loaded is a test that fails; the others run. */
function bundleText(files: readonly string[]): string {
  const paths = files.map((file) => resolve(file))
  return `const { test } = require('node:test')
for (const path of ${JSON.stringify(paths, null, 2)}) {
  try {
    require(path)
  } catch (error) {
    test(path, () => { throw error })
  }
}
`
}
