import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { linksOf, readPage } from '../docs/pages.ts'
import { ROOT } from '../docs/sources.ts'
import { checkHooks, watchImports } from './import-page.ts'
import { missingLine, stepsOf } from './page.ts'
import { Reader } from './reader.ts'
import { Walk } from './walk.ts'

const FOLDER = 'src/guides'
const INDEX = `${FOLDER}/README.md`
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
/** While one is written: a part of its name. The first one makes the application that the others go on with. */
const ONLY = process.env.GUIDE
/** Its commands are about another version: `test/rooms/package` has one, and runs them. */
const NEEDS_NEXT_VERSION = `${FOLDER}/upgrading.md`
/** Its page is for a browser. */
const BACKGROUND_WORK = `${FOLDER}/background-work.md`
/** In the order in which the index names them. */
const GUIDES = linksOf(readPage(INDEX, read(INDEX).split('\n## ')[0]!))
  .map(({ file }) => file)
  .filter((file, n, files) => file.startsWith(`${FOLDER}/`) && files.indexOf(file) === n)

test('the index names every guide, and every page beside them', () => {
  const pages = readdirSync(join(ROOT, FOLDER)).filter((name) => name.endsWith('.md'))
  const named = linksOf(readPage(INDEX, read(INDEX))).map(({ file }) => file)
  for (const page of pages.map((name) => `${FOLDER}/${name}`)) assert.ok(page === INDEX || named.includes(page), page)
})

describe('one application, in which somebody follows all guides', () => {
  let reader: Reader
  let walk: Walk
  before(() => {
    reader = new Reader()
    walk = new Walk(reader)
  })
  after(() => reader?.leave())

  for (const guide of GUIDES.filter((each) => each !== NEEDS_NEXT_VERSION)) {
    const isWanted = ONLY === undefined || guide.includes(ONLY) || guide === GUIDES[0]
    test(`${guide} does what it says`, { skip: !isWanted }, async (t) => {
      await walk.follow(read(guide))
      if (guide !== BACKGROUND_WORK) return
      await checkHooks(reader)
      await watchImports(t, reader)
    })
  }

  test('has scripts of the names of the commands', () => {
    const { scripts } = JSON.parse(readFileSync(join(reader.cwd, 'package.json'), 'utf8'))
    for (const [name, command] of Object.entries(scripts))
      assert.equal(command, ['start', 'dev'].includes(name) ? `exec heddle ${name}` : `heddle ${name}`)
  })

  test('compiles', async () => {
    await reader.stopService()
    const { code, output } = await reader.run('node node_modules/typescript/bin/tsc --noEmit')
    assert.equal(code, 0, output)
  })

  test('passes the lint', async () => {
    const { code, output } = await reader.run('npm run lint')
    assert.equal(code, 0, output)
    assert.match(output, /errors 0, warnings 0/)
  })
})

test('a block is a file, a command, what it prints, or what the service logs', () => {
  const steps = stepsOf(
    [
      '```ts\n// a/b.ts\nexport {}\n```\nAdd to it:\n```dotenv\nA=1\n```\n',
      'Make `c.json`:\n```json\n{}\n```\n```js\nread()\n```\n',
      '```sh\ncurl a\n# {"b":1}\nnpm test\n```\nIt says\n```text\n…\npass 1\n```\n```log\nReloaded\n```\n',
    ].join(''),
  )
  assert.deepEqual(steps, [
    { kind: 'file', path: 'a/b.ts', text: '// a/b.ts\nexport {}\n', isAdded: false },
    { kind: 'file', path: '.env', text: 'A=1\n', isAdded: true },
    { kind: 'file', path: 'c.json', text: '{}\n', isAdded: false },
    { kind: 'command', command: { text: 'curl a', answer: '{"b":1}' }, shown: [] },
    { kind: 'command', command: { text: 'npm test', answer: null }, shown: ['pass 1'] },
    { kind: 'log', lines: ['Reloaded'] },
  ])
  assert.throws(() => stepsOf('```ts\nexport {}\n```\n'), /does not name its file/)
  assert.throws(() => stepsOf('```text\nx\n```\n'), /follows no command/)
})

test('lines are found in their order, whatever the time and between them', () => {
  const output = '[14:02:11.520] INFO: a  done in 82 ms\r\nother\n✔ a test (12.5ms)\n'
  assert.equal(missingLine(output, ['[01:00:00.000] INFO: a  done in 1 ms', '✔ a … (1 ms)']), null)
  assert.equal(missingLine(output, ['✔ a test (1 ms)', 'other']), 'other')
  assert.equal(missingLine(output, ['othe']), 'othe')
})
