import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { linksOf, readPage, trackedFiles, trackedPages } from '../rooms/docs/pages.ts'
import { ROOT, sourcesIn } from '../rooms/docs/sources.ts'

const PAGES = trackedPages()
const FILES = trackedFiles()
const FOLDERS = new Set(FILES.flatMap((path) => path.split('/').map((_, n, parts) => parts.slice(0, n).join('/'))))
const NAMES = new Set(FILES.map((path) => basename(path)))
const SCRIPTS = Object.keys(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).scripts)
const OF_NPM = ['pack', 'ci', 'install', 'update', 'create', 'uninstall']
/** Written when the project runs, and not checked in. */
const MADE = readFileSync(join(ROOT, '.gitignore'), 'utf8')
  .split('\n')
  .filter((line) => line.endsWith('/'))

test('every link leads to a file, and to a heading in it', () => {
  const faults = PAGES.flatMap((page) =>
    linksOf(page)
      .filter(({ file, anchor }) => {
        if (anchor === '') return !FILES.includes(file) && !FOLDERS.has(file)
        return !PAGES.some(({ path, anchors }) => path === file && anchors.has(anchor))
      })
      .map(({ link }) => `${page.path}: ${link}`),
  )
  assert.deepEqual(faults, [])
})

test('the first page has at most 150 lines, and leads to all others', () => {
  const first = PAGES.find(({ path }) => path === 'README.md')!
  assert.ok(first.text.split('\n').length - 1 <= 150)
  const named = linksOf(first).map(({ file }) => file)
  const missing = PAGES.map(({ path }) => path).filter((path) => path !== 'README.md' && !named.includes(path))
  // What a host of repositories shows by itself.
  assert.deepEqual(
    missing.filter((path) => !path.startsWith('.')),
    [],
  )
})

test('every path of the repository that a page names is there', () => {
  const faults = PAGES.flatMap(({ path, codeSpans }) =>
    codeSpans.filter((span) => isMissing(span)).map((span) => `${path}: ${span}`),
  )
  assert.deepEqual(faults, [])
})

test('every path below /system that a page names is served', () => {
  const sources = [...sourcesIn('domains').values()].join('\n')
  const served = [...sources.matchAll(/\b(?:add(?:Endpoint|Stream)|http\.\w+)\(\s*'(\/system\/[^']+)'/g)].map(
    ([, path]) => path!,
  )
  assert.ok(served.length > 20)
  const faults = PAGES.flatMap(({ path, codeSpans }) => {
    const named = codeSpans.map((span) => /^(?:[A-Z]+ )?(\/system\/[\w/.:-]+)$/.exec(span)?.[1])
    return named.filter((name) => name !== undefined && !served.includes(name)).map((name) => `${path}: ${name}`)
  })
  assert.deepEqual(faults, [])
})

test('every npm command is one, and every word of npm test names a test', () => {
  const tests = FILES.filter((path) => /^test\/.*\.test\.ts$/.test(path)).map((path) => path.slice('test/'.length))
  const faults: string[] = []
  for (const { path, code } of PAGES) {
    const examples = exampleDomains(code.join('\n'))
    for (const [command, run, name, rest] of code.join('\n').matchAll(/\bnpm (run )?([a-z][\w:-]*)([^\n]*)/g)) {
      const known = run === undefined ? [...OF_NPM, 'start', 'test'] : SCRIPTS
      if (!known.includes(name!)) faults.push(`${path}: ${command}`)
      if (name !== 'test' || run !== undefined) continue
      const words = rest!
        .replace(/\s(?:#|&&).*$/, '')
        .replace(/ --(?:listener|name|tier) (?:'[^']*'|\S+)/g, '')
        .split(' ')
        .filter((word) => word !== '' && word !== '--')
      for (const word of words) {
        const isTest = examples.has(word) || tests.some((file) => file.includes(word))
        if (!/^<.*>$/.test(word) && !isTest) faults.push(`${path}: npm test ${word}`)
      }
    }
  }
  assert.deepEqual(faults, [])
})

test('links, headings and code are told apart', () => {
  const page = readPage(
    'a/b.md',
    '# A `c` & d\n[x](../e.md#f) `[y](z)`\n```md\n# no\n[n](o)\n```\n# A c & d\n[u](https://v)\n',
  )
  assert.deepEqual(linksOf(page), [{ link: '../e.md#f', file: 'e.md', anchor: 'f' }])
  assert.deepEqual([...page.anchors], ['a-c--d', 'a-c--d-1'])
  assert.deepEqual(page.codeSpans, ['c', '[y](z)'])
})

/** Looks like a path of this repository, and is none. Names in angle brackets, patterns and domains of examples stand for others. */
function isMissing(span: string): boolean {
  const path = span.replace(/^\.\//, '').replace(/:\d+(:\d+)?$/, '')
  if (!/^\w[\w.@/-]*$/.test(path) || MADE.some((folder) => `${path}/`.startsWith(folder))) return false
  if (!path.includes('/')) return /^[\w.-]+\.(?:ts|lua|sh|conf)$/.test(path) && !NAMES.has(path)
  const [top, second] = path.split('/') as [string, string]
  if (!FOLDERS.has(top)) return false
  if (/^(?:domains|test)$/.test(top) && second !== '' && !second.includes('.') && !FOLDERS.has(`${top}/${second}`))
    return false
  const clean = path.replace(/\/$/, '')
  return !FILES.includes(clean) && !FOLDERS.has(clean)
}

/** Words that find tests which a page makes up: the domains that it scaffolds, or has tests of, and the names of these tests. */
function exampleDomains(code: string): Set<string> {
  const made = [...code.matchAll(/npm run new -- domain (\w+)|^\/\/ test\/(\w+)\/(?:([\w-]+)\.test\.ts$)?/gm)]
  return new Set(made.flatMap(([, ...names]) => names.filter((name) => name !== undefined)))
}
