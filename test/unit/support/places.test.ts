import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { chosenFiles, entriesOf, PLACES, TIERS } from '../../support/runner/entries.ts'
import { importsOf, loads } from '../../support/runner/imports.ts'

const TESTS = fileURLToPath(new URL('../..', import.meta.url))
const TABLE = readFileSync(join(TESTS, 'README.md'), 'utf8')
  .split('\n## ')
  .find((part) => part.startsWith('Claims'))!

/** A process costs a fifth of a second of processor time before its first test. */
const PROCESSES_MAX = 70
/** Modules and packages with which a file starts processes or threads. */
const STARTING_PACKAGES = ['node:child_process', 'node:worker_threads', 'piscina', '#heddle/testing', 'playwright-core']
/** Helpers that do. */
const STARTING_FILES = ['support/heddle.ts', 'support/servers/', 'support/browser.ts']
/** What a file does to the process that it runs in, and other files would notice. */
const MARKS: readonly RegExp[] = [
  // Hooks of the whole file would run around the tests of every file.
  /^(?:after|before|afterEach|beforeEach)\(/m,
  /import \{[^}]*\b(?:after|before|afterEach|beforeEach|mock)\b[^}]*\} from 'node:test'/,
  /\bprocess\.(?:on|once|exit|chdir|kill|emit)\(/,
  /\bprocess\.(?:exitCode|argv|execArgv|env(?:\.\w+|\[[^\]]+\])) = /,
  /\b(?:delete|Object\.assign\() ?process\.env\b/,
  /\bglobalThis\.\w+ = /,
]

function faultsOf(file: string): string[] {
  const imports = importsOf(file)
  const texts = [...imports.files].map((path) => readFileSync(path, 'utf8'))
  return [
    ...STARTING_PACKAGES.filter((name) => imports.packages.has(name)),
    ...STARTING_FILES.filter((path) => loads(imports, path)),
    ...MARKS.filter((mark) => texts.some((text) => mark.test(text))).map(String),
  ]
}

test('what shares a process starts none and no thread, and leaves its own as it was', () => {
  const files = chosenFiles(['unit'], []).filter((file) => !file.endsWith('/support/places.test.ts'))
  assert.ok(files.length > 100)
  const faults = files.flatMap((file) =>
    faultsOf(file).map((fault) => `${file}: ${fault}; test/rooms is for such a file`),
  )
  assert.deepEqual(faults, [])
})

test('every test lies in one of the places, and each place is run by `npm run test:all`', () => {
  const found = readdirSync(TESTS, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.test.ts') && !/node_modules|^shop\/application\/|^app\/|\/\.snippets\//.test(name),
  )
  const strays = found.filter((name) => !PLACES.some((place) => name.startsWith(`${place}/`)))
  assert.deepEqual(strays, [])
  assert.deepEqual(TIERS.all, PLACES)
  const files = chosenFiles(PLACES, [])
  const { beside, alone } = entriesOf(files, 2)
  const run = [...beside, ...alone].flatMap((entry) => entry.files)
  assert.deepEqual(run.sort(), files)
  assert.equal(alone.length, 1)
  assert.ok(beside.length + alone.length <= PROCESSES_MAX, `${beside.length + alone.length} processes`)
})

test('each claim has a file that proves it, and each file its claim', () => {
  const named = [...TABLE.matchAll(/\]\((claims\/[\w-]+\.test\.ts)\)/g)].map(([, file]) => file!)
  const files = chosenFiles(['claims'], []).map((file) => file.slice(file.indexOf('claims/')))
  assert.deepEqual([...new Set(named)].sort(), files)
  for (const row of TABLE.split('\n').filter((line) => line.startsWith('| '))) {
    const [, claim, proof] = row.split('|').map((cell) => cell.trim())
    if (claim === 'claim' || /^-+$/.test(claim!)) continue
    assert.match(proof!, /\]\(claims\/|`npm (?:test|run) [^`]+`/, claim)
  }
})
