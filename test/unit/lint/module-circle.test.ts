import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixture } from '../../support/lint-fixture.ts'

test('files of a domain that import each other are a warning with the whole circle, and imports of types, or when code runs, are none', async (t) => {
  const { findings, lint } = await fixture(t, {
    'shop/a.ts': "import './fine.ts'\nimport './b.ts'\nexport const a = 1\n",
    'shop/b.ts': "export * from './c.ts'\n",
    'shop/c.ts': "export { a } from './a.ts'\n",
    'shop/fine.ts': "import type { B } from './b.ts'\nimport './self.ts'\nexport const late = () => import('./a.ts')\n",
    'shop/self.ts': "import './self.ts'\n",
  })
  assert.deepEqual(await findings('module-circle'), [
    'shop/a.ts:2 warning files import each other in a circle: shop/a.ts → shop/b.ts → shop/c.ts → shop/a.ts',
    'shop/self.ts:1 warning files import each other in a circle: shop/self.ts → shop/self.ts',
  ])
  assert.equal((await lint()).ok, true)
})
