import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Application } from './application.ts'

test('an import of a name that is not there is refused at load, as in ES modules, and no other import is', (t) => {
  const application = new Application(t)
  application.write('domains/part.ts', 'export const one = 1\nexport type Kind = string\nexport default 2\n')
  // What import each other have their names later.
  application.write('domains/left.ts', "import { right } from './right.ts'\nexport const left = () => right()\n")
  application.write('domains/right.ts', "import { left } from './left.ts'\nexport const right = () => typeof left\n")
  application.write(
    'domains/good.ts',
    `import assert, { equal } from 'node:assert'
import * as all from './part.ts'
import two, { type Kind, one } from './part.ts'
import { left } from './left.ts'
import { readFileSync as read } from 'node:fs'
const kind: Kind = left()
process.stdout.write([kind, one, two, typeof (all as { none?: unknown }).none, typeof read, typeof assert, typeof equal].join())
`,
  )
  const faults = {
    none: "import { one, none } from './part.ts'\nexport const use = () => none(one)\n",
    reexport: "export { none } from './part.ts'\n",
    builtin: "import { readFil } from 'node:fs'\nexport const use = () => readFil\n",
    default: "import part from './left.ts'\nexport const use = () => part\n",
  }
  for (const [name, text] of Object.entries(faults)) application.write(`domains/${name}.ts`, text)
  application.program(`require(${JSON.stringify(`${application.folder}/domains/good.ts`)})
for (const name of ${JSON.stringify(Object.keys(faults))}) {
  try {
    require(${JSON.stringify(`${application.folder}/domains/`)} + name + '.ts')
    process.stdout.write('\\n' + name + ' was loaded')
  } catch (error) {
    process.stdout.write('\\n' + error.name + ' ' + error.message)
  }
}`)
  // The second run has what the first has kept.
  for (let n = 0; n < 2; n++) {
    const { stdout, stderr } = application.run()
    assert.equal(stderr, '')
    assert.deepEqual(stdout.split('\n'), [
      'function,1,2,undefined,function,function,function',
      "SyntaxError The requested module './part.ts' does not provide an export named 'none'",
      "SyntaxError The requested module './part.ts' does not provide an export named 'none'",
      "SyntaxError The requested module 'node:fs' does not provide an export named 'readFil'",
      "SyntaxError The requested module './left.ts' does not provide an export named 'default'",
    ])
  }
})
