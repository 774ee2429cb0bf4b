import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const TESTS = fileURLToPath(new URL('../..', import.meta.url))

/** Where tests lie. The place says how a file is run: `test/README.md`. */
export const PLACES = ['unit', 'claims', 'app', 'rooms'] as const
export type Place = (typeof PLACES)[number]

/** What is run together under one name. */
export const TIERS: Readonly<Record<string, readonly Place[]>> = {
  test: ['unit', 'claims', 'app'],
  /** What is quick enough to run again at each save. */
  watch: ['unit', 'app'],
  all: PLACES,
  ...Object.fromEntries(PLACES.map((place) => [place, [place]])),
}

/** Nothing may run beside these: most of them measure time. */
const ALONE: Readonly<Record<string, string>> = {
  'rooms/architecture/clone.test.ts': 'it puts a domain into the checkout, which other tests read',
  'rooms/bench/load.test.ts': 'it measures a server for a fifth of a second',
  'rooms/bench/open-loop.test.ts': 'it holds a rate of requests',
  'rooms/bench/cpu.test.ts': 'it measures processor time',
  'rooms/lanes/load.test.ts': 'it needs sixteen requests to arrive within 150 ms',
}

/** What takes longest begins first, so that what begins last is short: folders and files of their place. */
const FIRST = [
  'effects-once.test.ts',
  'lane-deaths.test.ts',
  'dashboard.test.ts',
  'db-on-postgres.test.ts',
  'two-replicas.test.ts',
  'large-uploads.test.ts',
  'history.test.ts',
  'guardian.test.ts',
  'process-deaths.test.ts',
  'two-processes.test.ts',
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
]

/** One process and the test files that it runs. */
export interface Entry {
  /** The module that is started. */
  path: string
  /** From the root of the repository. */
  files: readonly string[]
}

/** @param words files of which the path below `test/` has one of them; none: all of the places */
export function chosenFiles(places: readonly Place[], words: readonly string[]): string[] {
  return places
    .flatMap((place) =>
      readdirSync(join(TESTS, place), { recursive: true, encoding: 'utf8' }).map((name) => `${place}/${name}`),
    )
    .filter((name) => name.endsWith('.test.ts') && !name.includes('node_modules'))
    .filter((name) => words.length === 0 || words.some((word) => name.includes(word)))
    .map((name) => relative(process.cwd(), join(TESTS, name)))
    .sort()
}

/**
 * What is to be run, in the order in which it begins.
 * @param bundles how many processes the files of `unit` share
 */
export function entriesOf(files: readonly string[], bundles: number): { beside: Entry[]; alone: Entry[] } {
  const name = (file: string): string => relative(TESTS, resolve(file)).replaceAll('\\', '/')
  const single = (file: string): Entry => ({ path: resolve(file), files: [file] })
  const unit = files.filter((file) => name(file).startsWith('unit/'))
  const others = files.filter((file) => !unit.includes(file))
  const rank = (file: string): number => {
    const at = FIRST.indexOf(name(file).split('/')[1]!)
    return at < 0 ? FIRST.length : at
  }
  const beside = others.filter((file) => ALONE[name(file)] === undefined).sort((one, other) => rank(one) - rank(other))
  return {
    beside: [...bundled(unit, bundles), ...beside.map(single)],
    alone: others.filter((file) => ALONE[name(file)] !== undefined).map(single),
  }
}

/** Deals the files out to processes. */
function bundled(files: readonly string[], processes: number): Entry[] {
  if (files.length === 0) return []
  const folder = mkdtempSync(join(tmpdir(), 'heddle-test-bundles-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  return Array.from({ length: Math.min(processes, files.length) }, (_, index) => {
    const own = files.filter((_, at) => at % processes === index)
    const path = join(folder, `unit-${index + 1}.test.cjs`)
    writeFileSync(path, bundleText(own))
    return { path, files: own }
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
