/** Holds that each planted fault, and each mutant, still has its place. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { MUTANTS } from '../../mutants/mutants.ts'
import { PLANTED } from '../../simulation/planted.ts'
import { ASSERTED_PLANTED, SHARED_PLANTED, STORED_PLANTED } from '../../simulation/stored/planted.ts'

const ROOT = join(import.meta.dirname, '../../..')
const SRC = join(ROOT, 'src')

test('the text that a planted fault replaces stands once in its file', () => {
  const all = [
    ...PLANTED.map((planted) => ({ folder: 'primary/events', ...planted })),
    ...[...STORED_PLANTED, ...SHARED_PLANTED, ...ASSERTED_PLANTED].map((planted) => ({
      folder: 'primary/event-store',
      ...planted,
    })),
  ]
  const isLost = ({ folder, file, text }: (typeof all)[number]): boolean =>
    readFileSync(join(SRC, folder, file), 'utf8').split(text).length !== 2
  assert.deepEqual(
    all.filter(isLost).map(({ what, file }) => `${file}: ${what}`),
    [],
  )
})

test('the text of a mutant stands once in its file, and its tests are there', () => {
  const isThere = (name: string): boolean =>
    ['unit', 'claims', 'rooms'].some((place) => existsSync(join(ROOT, 'test', place, `${name}.test.ts`)))
  const lost = MUTANTS.filter(
    ({ file, from, tests }) => readFileSync(join(ROOT, file), 'utf8').split(from).length !== 2 || !tests.every(isThere),
  )
  assert.deepEqual(
    lost.map(({ what, file }) => `${file}: ${what}`),
    [],
  )
})
