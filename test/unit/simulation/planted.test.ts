/** Holds that each planted fault still has its place. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { PLANTED } from '../../simulation/planted.ts'
import { STORED_PLANTED } from '../../simulation/stored/planted.ts'

const PRIMARY = join(import.meta.dirname, '../../../src/primary')

test('the text that a planted fault replaces stands once in its file', () => {
  const all = [
    ...PLANTED.map((planted) => ({ folder: 'events', ...planted })),
    ...STORED_PLANTED.map((planted) => ({ folder: 'event-log', ...planted })),
  ]
  const isLost = ({ folder, file, text }: (typeof all)[number]): boolean =>
    readFileSync(join(PRIMARY, folder, file), 'utf8').split(text).length !== 2
  assert.deepEqual(
    all.filter(isLost).map(({ what, file }) => `${file}: ${what}`),
    [],
  )
})
