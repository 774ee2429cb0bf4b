import assert from 'node:assert/strict'
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ROOT } from '../docs/sources.ts'
import { Reader } from '../guides/reader.ts'
import { Walk } from '../guides/walk.ts'

const PAGE = readFileSync(join(ROOT, 'test/shop/application/README.md'), 'utf8')
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

test('whoever follows the page of the shop, in a clone, buys something', async (t) => {
  const [, start, customer] = /## Start it(.*?npm run shop\n```)(.*?)## What is where/s.exec(PAGE)!
  assert.match(start!, /```sh\nnpm ci\nnpm run shop\n```$/)
  const reader = new Reader()
  t.after(() => reader.leave())
  symlinkSync(join(ROOT, 'test'), join(reader.cwd, 'test'))
  await reader.addPort('8000')
  await reader.serve(`heddle() { node src/heddle.cjs "$@"; }\n${scripts.shop}`, null)
  await new Walk(reader).follow(customer!)
})
