import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { ENTRIES, thingOf } from '../../packages/entries.ts'
import { pageTexts } from '../../packages/page.ts'
import { readResults } from '../../packages/results.ts'

test('the page of packages says what the last run saw', () => {
  const { is, should } = pageTexts()
  assert.equal(is, should, 'npm run test:packages -- --page')
})

test('each package of the list has its thing and a result', () => {
  const seen = new Set(readResults().map(({ name }) => name))
  for (const entry of ENTRIES) {
    assert.ok(existsSync(new URL(`../../packages/things/${thingOf(entry)}`, import.meta.url)), thingOf(entry))
    assert.ok(seen.has(entry.name), `npm run test:packages -- ${entry.name}`)
  }
})
