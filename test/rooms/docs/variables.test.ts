import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { VARIABLES } from '../../../src/core/config/schema.ts'
import { spawnHeddle } from '../../support/heddle.ts'
import { ROOT, sourcesIn } from './sources.ts'
import {
  mentions,
  ONLY_FOR_DEFAULTS,
  READ_BY_LIBRARIES,
  TABLE_END,
  TABLE_START,
  TOLD_DEFAULTS,
  variablesTable,
} from './variables-table.ts'

const PAGE = join(ROOT, 'src/core/config/README.md')

test('the page of variables holds the table that the schema gives', () => {
  const page = readFileSync(PAGE, 'utf8')
  const [before, rest, ...more] = page.split(TABLE_START)
  const [, after, ...evenMore] = (rest ?? '').split(TABLE_END)
  assert.ok(after !== undefined && more.length + evenMore.length === 0, `${PAGE} has lost the marks of its table`)
  const fresh = `${before}${TABLE_START}\n\n${variablesTable()}\n\n${TABLE_END}${after}`
  if (process.env.UPDATE_DOCS === '1') writeFileSync(PAGE, fresh)
  else assert.equal(page, fresh, 'src/core/config/README.md is not up to date: run UPDATE_DOCS=1 npm test docs')
})

test('each default that the page tells in words is one that it could not show', () => {
  for (const name of Object.keys(TOLD_DEFAULTS)) {
    const row = VARIABLES[name as keyof typeof VARIABLES]
    const isShowable = typeof row?.default !== 'function' && !['AUTH_SECRET_KEY', 'TOOLS_DIR'].includes(name)
    assert.ok(!isShowable, `${name} has a plain default: the page can show it`)
  }
})

test('each variable is read by something, and not by the configuration alone', () => {
  const sources = [...sourcesIn('src'), ...sourcesIn('domains'), ...sourcesIn('workers')]
  const readers = sources.filter(([path]) => !path.startsWith(join('src', 'core', 'config')))
  for (const name of Object.keys(VARIABLES)) {
    const isRead = readers.some(([, text]) => mentions(text, name))
    assert.equal(isRead, !ONLY_FOR_DEFAULTS.has(name) && !READ_BY_LIBRARIES.has(name), name)
  }
})

test('every fault of the environment is told, no secret is, and the process ends with 78', async (t) => {
  const env = { HTTP_PORT: 'high', LOG_LEVEL: 'loud', AUTH_SECRET_KEY: 'too short' }
  const { child, errors } = await spawnHeddle(t, { env })
  const code = await new Promise((resolve) => child.on('close', resolve))
  const message = errors.join('')
  for (const name of Object.keys(env)) assert.match(message, new RegExp(`^ {2}${name}: expected `, 'm'))
  assert.doesNotMatch(message, /too short/)
  assert.equal(code, 78)
})
