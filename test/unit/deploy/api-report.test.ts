import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import * as drizzle from '../../../src/adapters/drizzle.ts'
import * as kysely from '../../../src/adapters/kysely.ts'
import * as testing from '../../../src/devtools/testing/index.ts'
import * as heddle from '../../../src/index.ts'

const REPORT = readFileSync(new URL('../../../deploy/package/api.txt', import.meta.url), 'utf8')

test('the report of the public types lists every name that can be imported, and says what each is', () => {
  const entries = {
    '#heddle': heddle,
    '#heddle/testing': testing,
    '#heddle/kysely': kysely,
    '#heddle/drizzle': drizzle,
  }
  for (const [entry, module] of Object.entries(entries)) {
    const [, list = ''] = REPORT.split(`\n${entry}\n`)
    const names = [...list.matchAll(/(?:^|\n) {2}(\w+)(?=\n)/gy)].map(([, name]) => name!)
    assert.deepEqual(
      Object.keys(module).filter((name) => !names.includes(name)),
      [],
      entry,
    )
    for (const name of names) assert.match(REPORT, new RegExp(`^// \\S+ ${name}$`, 'm'), `${entry} ${name}`)
  }
})
