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

/** Small rooms that run in the process of another one. */
const WITH: Readonly<Record<string, string>> = {
  adapters: 'db',
  assistant: 'history',
  auth: 'access',
  causality: 'kernel',
  client: 'apidocs',
  files: 'http',
  lint: 'cli',
  logging: 'primary',
  matrix: 'chaos',
  preload: 'config',
  redis: 'state',
  shm: 'primary',
  shop: 'package',
  testing: 'package',
  tools: 'kernel',
}
/** Rooms that take long share so many processes. */
const PARTS: Readonly<Record<string, number>> = { lanes: 3, logs: 3, 'event-store': 2, db: 2, http: 2 }
/** How many processes the claims share. */
const CLAIMS = 20

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
  'event-store',
  'lanes',
  'package',
  'deploy',
  'neighbours',
  'elastic',
  'boot',
  'guides',
  'jobs',
  'chaos',
  'guardian',
  'logs',
  'hostile',
  'http',
  'db',
  'users',
  'tracing',
  'docs',
  'history',
  'dashboard',
  'cli',
  'redis-streams',
  'system',
  'apidocs',
  'sockets',
  'state',
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
 * What is to be run, in the order in which it begins: a room is a process, or a few, and its files run in it one after the other.
 * @param bundles how many processes the files of `unit` share
 */
export function entriesOf(files: readonly string[], bundles: number): { beside: Entry[]; alone: Entry[] } {
  const name = (file: string): string => relative(TESTS, resolve(file)).replaceAll('\\', '/')
  const placeOf = (file: string): string => name(file).split('/')[0]!
  const nameInPlace = (file: string): string => name(file).split('/')[1]!
  const rank = (at: string): number => {
    const found = FIRST.indexOf(at)
    return found < 0 ? FIRST.length : found
  }
  const isAlone = (file: string): boolean => ALONE[name(file)] !== undefined
  const beside = files.filter((file) => !isAlone(file))
  const of = (place: Place): string[] => beside.filter((file) => placeOf(file) === place)
  const byRank = (one: string, other: string): number => rank(nameInPlace(one)) - rank(nameInPlace(other))
  const rooms = new Map<string, string[]>()
  for (const file of of('rooms')) {
    const room = WITH[nameInPlace(file)] ?? nameInPlace(file)
    rooms.set(room, [...(rooms.get(room) ?? []), file])
  }
  const byRoom = [...rooms].sort(([one], [other]) => rank(one) - rank(other))
  const folder = mkdtempSync(join(tmpdir(), 'heddle-test-bundles-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const entry = (title: string, own: readonly string[]): Entry[] => {
    if (own.length < 2) return own.map((file) => ({ path: resolve(file), files: [file] }))
    const path = join(folder, `${title}.test.cjs`)
    writeFileSync(path, bundleText(own))
    return [{ path, files: own }]
  }
  const deal = (title: string, all: readonly string[], processes: number): Entry[] =>
    Array.from({ length: processes }, (_, index) => index).flatMap((index) =>
      entry(
        processes === 1 ? title : `${title}-${index + 1}`,
        all.filter((_, at) => at % processes === index),
      ),
    )
  return {
    beside: [
      ...deal('unit', of('unit'), bundles),
      ...deal('claims', of('claims').sort(byRank), CLAIMS),
      ...of('app').flatMap((file) => entry('app', [file])),
      ...byRoom.flatMap(([room, own]) => deal(room, own, PARTS[room] ?? 1)),
    ],
    alone: entry('alone', files.filter(isAlone)),
  }
}

/** Each file is a suite, to which its hooks belong. One that cannot be loaded is a test that fails; the others run. */
function bundleText(files: readonly string[]): string {
  return `const { describe, test } = require('node:test')
require(${JSON.stringify(join(TESTS, 'support/process-end.ts'))})
for (const file of ${JSON.stringify(files, null, 2)}) {
  describe(file, () => {
    try {
      require(require('node:path').resolve(file))
    } catch (error) {
      test('can be loaded', () => { throw error })
    }
  })
}
`
}
