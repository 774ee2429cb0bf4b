import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const PRELOAD = fileURLToPath(new URL('../../../src/preload.cjs', import.meta.url))

/** What a program says that is run with what every start loads first. */
function said(program: string): unknown {
  const args = ['--require', PRELOAD, '--eval', `process.stdout.write(JSON.stringify((() => { ${program} })()))`]
  return JSON.parse(
    execFileSync(process.execPath, args, { encoding: 'utf8', env: { ...process.env, NODE_V8_COVERAGE: '' } }),
  )
}

const LOADED = `Object.keys(require.cache).filter((path) => /zod.v4.locales.(?!index)/.test(path)).length`

test('a language of zod is loaded when it is asked for, and is what it was', () => {
  const [before, names, message, isSame, isFrozen, after] = said(`
    const { z } = require('zod')
    const before = ${LOADED}
    const names = Object.keys(z.locales)
    z.config(z.locales.de())
    const { error } = z.string().safeParse(1)
    const isSame = z.locales.de === require('zod/v4/core').locales.de && z.locales.de === z.locales.de
    return [before, names, error.issues[0].message, isSame, Object.isFrozen(z.locales), ${LOADED}]
  `) as [number, string[], string, boolean, boolean, number]
  assert.ok(before <= 2, `${before} of ${names.length} languages were loaded before one was asked for`)
  assert.match(message, /^Ungültige Eingabe/)
  assert.deepEqual([isSame, isFrozen, after], [true, true, before + 1])
  const every = said(
    `return Object.entries(require('zod').z.locales).map(([name, { name: own, length }]) => [name, own, length, typeof require('zod').z.locales[name]().localeError])`,
  )
  assert.deepEqual(
    (every as string[][]).map(([name]) => name),
    names,
  )
  for (const [name, , , type] of every as string[][]) assert.equal(type, 'function', name)
})
