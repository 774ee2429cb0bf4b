/** Holds that each planted fault still has its place in the hub. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { PLANTED } from '../../simulation/planted.ts'

const EVENTS = join(import.meta.dirname, '../../../src/primary/events')

test('the text that a planted fault replaces stands once in its file', () => {
  const lost = PLANTED.filter(({ file, text }) => readFileSync(join(EVENTS, file), 'utf8').split(text).length !== 2)
  assert.deepEqual(
    lost.map(({ what, file }) => `${file}: ${what}`),
    [],
  )
})
