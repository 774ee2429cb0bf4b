import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MUTANTS, type Mutant } from './mutants.ts'

/**
 * `npm run test:mutants`, by hand only: plants each mutant of the list in its file, runs the tests of its area, and puts the text back. One that no test
 * notices has survived. `npm run test:mutants -- lock ring` takes those whose file or description has a word. Exit code 1: a survivor that the list does not
 * explain, or one whose text has changed.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const LOADER = ['--require', './test/support/typescript/register.cjs', '--test']
const PLACES = ['unit', 'claims', 'rooms']
const TIMEOUT_MS = 180_000

let restore = (): void => {}
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => {
    restore()
    process.exit(1)
  })

/** True when a test has failed. */
function isKilled({ file, from, to, tests }: Mutant): boolean {
  const path = join(ROOT, file)
  const text = readFileSync(path, 'utf8')
  if (text.split(from).length !== 2) throw new Error(`${file} does not have this once: ${from}`)
  restore = () => writeFileSync(path, text)
  writeFileSync(
    path,
    text.replace(from, () => to),
  )
  try {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    const options = { cwd: ROOT, env, timeout: TIMEOUT_MS } as const
    return spawnSync(process.execPath, [...LOADER, ...tests.map(fileOf)], options).status !== 0
  } finally {
    restore()
    restore = () => {}
  }
}

function fileOf(name: string): string {
  const file = PLACES.map((place) => `test/${place}/${name}.test.ts`).find((path) => existsSync(join(ROOT, path)))
  if (file === undefined) throw new Error(`There is no ${name}.test.ts in ${PLACES.join(', ')}`)
  return file
}

const words = process.argv.slice(2)
const chosen = MUTANTS.filter(
  ({ what, file }) => words.length === 0 || words.some((word) => `${what} ${file}`.includes(word)),
)
for (const mutant of chosen) {
  const { what, file, equivalent } = mutant
  const killed = isKilled(mutant)
  const verdict = killed ? 'killed' : equivalent === undefined ? 'SURVIVED' : 'survived, as it may'
  console.log(`${verdict}: ${what} (${file})`)
  if (!killed && equivalent === undefined) process.exitCode = 1
}
