import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { assertFindings, fixture } from '../../support/lint-fixture.ts'

const RULE = 'domain-isolation'

const OF_BILLING =
  "//! error the domain 'users' imports '../../billing/a.ts' of the domain 'billing': domains talk by events"

test('every way to import another domain is found at its line', (t) =>
  assertFindings(t, RULE, {
    'users/plugins/create-user.ts': `import { a } from '../../billing/a.ts' ${OF_BILLING}
import type { B } from '../../billing/a.ts' ${OF_BILLING}
export { c } from '../../billing/a.ts' ${OF_BILLING}
export * from '../../billing/a.ts' ${OF_BILLING}
export type { D } from '../../billing/a.ts' ${OF_BILLING}
const lazy = () => import('../../billing/a.ts') ${OF_BILLING}
const old = require(\`../../billing/a.ts\`) ${OF_BILLING}
type E = import('../../billing/a.ts').E ${OF_BILLING}
import f = require('../../billing/a.ts') ${OF_BILLING}
`,
    'billing/a.ts': 'export const a = 1\n',
  }))

test('a domain whose name begins with the name of another is another', (t) => {
  const archive = "'../users-archive/a.ts' of the domain 'users-archive': domains talk by events"
  return assertFindings(t, RULE, {
    'users/a.ts': `import '../users-archive/a.ts' //! error the domain 'users' imports ${archive}\n`,
    'users-archive/a.ts': 'export {}\n',
  })
})

test("the inside of a tool and of the runtime are found, and '#' names other than '#heddle'", (t) => {
  const runtime = path.resolve(import.meta.dirname, '../../../src/kernel/inject.ts')
  const found = (what: string) => `//! error the domain 'users' imports ${what}`
  const inside = "the inside of the runtime: import 'heddle'"
  return assertFindings(t, RULE, {
    'users/plugins/a.ts': `import { Sqlite } from '../../../src/tools/sqlite/index.ts' ${found("'../../../src/tools/sqlite/index.ts', the inside of a tool: take the tool in the constructor")}
import { proxy } from '../../../src/kernel/proxy.ts' ${found(`'../../../src/kernel/proxy.ts', ${inside}`)}
import { inject } from ${JSON.stringify(runtime)} ${found(`'${runtime}', ${inside}`)}
import { x } from '#internal' ${found("'#internal', which is not 'heddle'")}
`,
  })
})

test('#heddle, its testing part, packages and files of the own domain are fine', async (t) => {
  const { lint } = await fixture(t, {
    'users/plugins/a.ts': `import { Plugin } from '#heddle'
import { start } from '#heddle/testing'
import { z } from 'zod'
import { readFile } from 'node:fs/promises'
import { rule } from '../rules.ts'
// import x from '../../billing/a.ts'
const text = "import x from '../../billing/a.ts'"
`,
    'users/rules.ts': 'export const rule = 1\n',
    'billing/a.ts': 'export const a = 1\n',
  })
  const { ok, findings } = await lint()
  assert.deepEqual(findings, [])
  assert.equal(ok, true)
})

test('specifiers that the source computes are found as far as it shows them', async (t) => {
  const { findings } = await fixture(t, {
    'users/names.ts': "export const FILE = '../../billing/a.ts'\n",
    'users/plugins/a.ts': `import { createRequire as make } from 'node:module'
import { FILE } from '../names.ts'
const load = make(import.meta.url)
load('../../billing/a.ts')
import('../../billing/' + 'a.ts')
import(FILE)
new Worker(new URL('../../billing/a.ts', import.meta.url))
import.meta.resolve('../../billing/a.ts')
import(\`../../billing/\${name}.ts\`)
import(own ? '../names.ts' : '../../billing/a.ts')
import(\`../\${name}.ts\`)
import(\`../../\${domain}/a.ts\`)
new URL('../../billing/a.ts', base)
other('../../billing/a.ts')
`,
    'billing/a.ts': 'export const a = 1\n',
  })
  const lines = (await findings(RULE)).map((finding) => finding.slice(0, finding.indexOf(' ')))
  assert.deepEqual(
    lines,
    [4, 5, 6, 7, 8, 9, 10].map((line) => `users/plugins/a.ts:${line}`),
  )
})

test('app.ts is of no domain, and domains may take its types', (t) =>
  assertFindings(t, RULE, {
    'app.ts': `import { a } from './users/a.ts' //! error app.ts imports './users/a.ts' of the domain 'users': domains talk by events
export default () => a
`,
    'users/a.ts': 'export const a = 1\n',
    'users/domain.ts': "import type app from '../app.ts'\nexport default (tools: typeof app) => tools\n",
  }))
