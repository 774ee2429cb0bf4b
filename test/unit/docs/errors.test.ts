import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { VARIABLES } from '../../../src/core/config/schema.ts'
import { CATALOGUE, type ErrorCode, HeddleError } from '../../../src/core/errors/catalogue.ts'
import type { RequestContext } from '../../../src/runtime/endpoint/context.ts'
import { replyOfThrown } from '../../../src/runtime/endpoint/reply.ts'
import { ROOT, sourcesIn } from '../../rooms/docs/sources.ts'

const ERRORS = readFileSync(join(ROOT, 'src/core/errors/README.md'), 'utf8')
const CODES = Object.keys(CATALOGUE) as ErrorCode[]
/** By the first letters of a code. */
const PAGES = {
  CONFIG_: 'config.md',
  HTTP_: 'http.md',
  PLUGIN_SET_ASIDE: 'http.md',
  EVENT_: 'event-bus.md',
  REPLICA_ID_TAKEN: 'event-bus.md',
  DB_: 'db.md',
  MIGRATION_: 'db.md',
  STATE_: 'state.md',
  KV_: 'state.md',
  LANE_BUSY: 'state.md',
  AUTH_: 'auth.md',
  HISTORY_: 'registry.md',
  SCHEDULER_: 'scheduler.md',
  PLUGIN_: '../../domains/README.md',
  TOOL_: '../../domains/README.md',
}
/** In the catalogue itself a code stands without quotes. */
const SOURCES = [...sourcesIn('src')]

const rows = ERRORS.split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) =>
    line
      .slice(1, -1)
      .split(' | ')
      .map((cell) => cell.trim()),
  )

test('the page of errors tells every code of the catalogue once, and no other', () => {
  const told = rows.map(([code]) => code!.replaceAll('`', ''))
  assert.deepEqual(told.toSorted(), CODES.toSorted())
  for (const [code, , means, mend, ...more] of rows) {
    assert.ok(means && mend && means.endsWith('.') && mend.endsWith('.') && more.length === 0, `the row of ${code}`)
  }
})

test('the page of each tool, or the guide, names the codes that its calls fail with, and leads to them', () => {
  for (const code of CODES) {
    const name = Object.entries(PAGES).find(([prefix]) => code.startsWith(prefix))?.[1]
    if (name === undefined) continue
    const page = readFileSync(join(ROOT, 'src/contracts', name), 'utf8')
    assert.match(page, new RegExp(`\\b${code}\\b`), `${name} does not name ${code}`)
    assert.match(page, /\]\((?:\.\.|\.\.\/src)\/core\/errors\/README\.md#/, name)
  }
})

test('every name in capitals on the page is a code or a variable', () => {
  for (const [name] of ERRORS.matchAll(/\b[A-Z]+(?:_[A-Z]+)+\b/g)) {
    assert.ok(name in CATALOGUE || name in VARIABLES, name)
  }
})

/** Only an HttpError reads it. */
const UNREAD = {} as RequestContext

test('the page names a status for what reaches a client as itself, and for nothing else', () => {
  const allSource = SOURCES.map(([, text]) => text).join('\n')
  const madeByListener = new Set(
    [...allSource.matchAll(/(?:\.fail\(|\berrorReply\(|\banswerOf = .*\n)([^\n]*)/g)].flatMap(
      ([, rest]) => rest!.match(/HTTP_[A-Z_]+/g) ?? [],
    ),
  )
  assert.ok(madeByListener.has('HTTP_LANE_STALLED') && madeByListener.has('HTTP_METHOD_NOT_ALLOWED'))
  for (const [cell, client] of rows) {
    const code = cell!.replaceAll('`', '') as ErrorCode
    const { status } = replyOfThrown(new HeddleError(code), UNREAD).reply
    const reaches = status !== 500 || madeByListener.has(code)
    assert.equal(client, reaches ? String(CATALOGUE[code][0]) : '–', code)
  }
})

test('every code of the catalogue is used somewhere', () => {
  const unused = CODES.filter((code) => !SOURCES.some(([, text]) => text.includes(`'${code}'`)))
  assert.deepEqual(unused, [])
})
