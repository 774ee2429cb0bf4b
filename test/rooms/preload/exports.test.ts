import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Application } from './application.ts'

const PART = `
import { inCycle } from './cycle.ts'
export { inCycle }
export const fixed: number = 1
export let counted = 0
export function count(): void { counted++ }
export class Thing {}
export const { taken } = { taken: 'taken' }
`

test('a name that a module exports is a plain property, and still what it means at the time', (t) => {
  const application = new Application(t)
  application.write('domains/part.ts', PART)
  application.write(
    'domains/cycle.ts',
    "import { fixed } from './part.ts'\nexport const inCycle = (): number => fixed\nexport const early = typeof inCycle\n",
  )
  application.write('domains/all.ts', "export * from './part.ts'\nexport * as part from './part.ts'\n")
  application.write(
    'domains/main.ts',
    `import * as part from './part.ts'
import * as all from './all.ts'
import { counted, count, inCycle } from './part.ts'
count()
const plain = (name: string): boolean => 'value' in (Object.getOwnPropertyDescriptor(require('./part.ts'), name) ?? {})
process.stdout.write(JSON.stringify({
  values: [part.fixed, counted, part.counted, all.counted, inCycle(), all.part.taken, typeof part.Thing],
  plain: ['fixed', 'count', 'Thing'].every(plain),
  read: ['counted', 'taken', 'inCycle'].some(plain),
  names: Object.keys(part).filter((name) => name !== 'default').sort(),
}))
`,
  )
  application.program(`require(${JSON.stringify(`${application.folder}/domains/main.ts`)})`)
  const { stdout, stderr } = application.run()
  assert.equal(stderr, '')
  assert.deepEqual(JSON.parse(stdout), {
    values: [1, 1, 1, 1, 1, 'taken', 'function'],
    plain: true,
    read: false,
    names: ['Thing', 'count', 'counted', 'fixed', 'inCycle', 'taken'],
  })
})

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
