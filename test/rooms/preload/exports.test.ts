import assert from 'node:assert/strict'
import { test } from 'node:test'
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
