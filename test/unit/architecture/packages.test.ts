import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Node } from 'oxc-parser'
import { moduleImports } from '../../../src/devtools/lint/imports.ts'
import { parseSource, unwrap, walk } from '../../../src/devtools/lint/syntax.ts'
import { targetOf } from './source-graph.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** What the project's card names, beside `node:test`. */
const CARD = [
  'uWebSockets.js',
  'piscina',
  'pg',
  'better-sqlite3',
  'ioredis',
  '@opentelemetry/sdk-trace-node',
  '@opentelemetry/exporter-trace-otlp-grpc',
  'jose',
  'tinybench',
  'tsx',
]
/** Their packages are installed elsewhere, by the command that runs them. */
const WITH_PACKAGES_OF_THEIR_OWN = /^(?:bench\/peers\/(?:bullmq|nestjs)|test\/packages\/things)\//
/** Binaries of one platform: npm and the listener choose one by its name. */
const OF_A_PLATFORM = /^(?:@uwsjs\/|node-(?:bin-)?(?:darwin|linux)-)/

const json = (path: string) => JSON.parse(readFileSync(join(ROOT, path), 'utf8'))
const manifest = json('package.json') as Record<string, Record<string, string>>
const SECTIONS = ['dependencies', 'optionalDependencies', 'devDependencies', 'peerDependencies'] as const
const declared = new Set(SECTIONS.flatMap((section) => Object.keys(manifest[section]!)))

interface Use {
  file: string
  name: string
  isType: boolean
}

const uses: Use[] = []
let reading: Promise<void> | null = null
/** Every text of a source: commands and paths in `node_modules` are among them. */
const texts: string[] = []

/** All sources, once. */
const read = (): Promise<void> => (reading ??= readSources())

async function readSources(): Promise<void> {
  const files = ['src', 'workers', 'domains', 'bench', 'test', 'deploy', '.ci'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
  )
  for (const file of files.filter((name) => /\.[cm]?[jt]s$/.test(name) && !WITH_PACKAGES_OF_THEIR_OWN.test(name))) {
    const syntax = await parseSource(join(ROOT, file), readFileSync(join(ROOT, file), 'utf8'))
    for (const { specifier, typeOnly } of moduleImports(syntax)) add(file, specifier, typeOnly)
    walk(syntax.program, (node) => {
      if (node.type === 'Literal' && typeof node.value === 'string') texts.push(node.value)
      if (node.type === 'TemplateElement') texts.push(node.value.cooked ?? '')
      // `createRequire(…)('name')`, `import.meta.resolve('name')`
      const [first] = node.type === 'CallExpression' && isLoader(node.callee) ? node.arguments : []
      if (first?.type === 'Literal' && typeof first.value === 'string') add(file, first.value, false)
    })
  }
}

function add(file: string, specifier: string, isType: boolean): void {
  const target = targetOf(file, specifier)
  if (target.startsWith('package:') && !specifier.startsWith('#') && !specifier.startsWith('/'))
    uses.push({ file, name: target.slice('package:'.length), isType })
  if (target === 'node:test') uses.push({ file, name: target, isType })
}

/** `createRequire(import.meta.url)`, its `resolve`, and `import.meta.resolve`. What another package's `require` loads is that package's dependency. */
function isLoader(callee: Node): boolean {
  const node = unwrap(callee)
  if (node.type === 'CallExpression') {
    const [base, maker] = [node.arguments[0], unwrap(node.callee)]
    return maker.type === 'Identifier' && maker.name === 'createRequire' && base !== undefined && isOfMeta(base)
  }
  if (node.type !== 'MemberExpression' || node.property.type !== 'Identifier') return false
  return node.property.name === 'resolve' && (isMeta(node.object) || isLoader(node.object))
}

const isMeta = (node: Node): boolean => unwrap(node).type === 'MetaProperty'

function isOfMeta(base: Node): boolean {
  const node = unwrap(base)
  return node.type === 'MemberExpression' && isMeta(node.object)
}

test('each package of the card is loaded by src, bench or test', async () => {
  await read()
  const loaded = uses.filter(({ isType }) => !isType)
  for (const name of [...CARD, 'node:test']) {
    const isProduct = !['tinybench', 'node:test'].includes(name)
    const places = loaded.filter((use) => use.name === name && (!isProduct || use.file.startsWith('src/')))
    assert.ok(places.length > 0, `nothing loads ${name}`)
  }
})

test('each package that is imported is declared', async () => {
  await read()
  const missing = uses.filter(({ name }) => !['heddle', 'node:test'].includes(name) && !isDeclared(name))
  assert.deepEqual(
    missing.map(({ file, name }) => `${file} imports ${name}, which package.json does not declare`),
    [],
  )
})

test('what an application runs imports no package that is declared for development alone', async () => {
  await read()
  const installed = new Set(
    ['dependencies', 'optionalDependencies', 'peerDependencies'].flatMap((section) => Object.keys(manifest[section]!)),
  )
  const missing = uses.filter(
    ({ file, name, isType }) => /^(?:src|workers|domains)\//.test(file) && !isType && !installed.has(name),
  )
  assert.deepEqual(
    missing.filter(({ name }) => name !== 'heddle').map(({ file, name }) => `${file}: ${name}`),
    [],
  )
})

test('each package that is declared is used', async () => {
  await read()
  const commands = [...Object.values(manifest.scripts!), readFileSync(join(ROOT, '.ci/run'), 'utf8')]
  const isRun = (name: string): boolean =>
    commandsOf(name).some(
      (command) =>
        texts.some((text) => text.includes(`.bin/${command}`) || text === command) ||
        commands.some((text) => new RegExp(`(?:^|\\s)${command}\\s`, 'm').test(text)),
    )
  const isFile = (name: string): boolean => texts.some((text) => text.includes(`node_modules/${name}/`))
  const unused = [...declared].filter((name) => {
    if (OF_A_PLATFORM.test(name) || uses.some((use) => use.name === name)) return false
    return !isTypesOfUsed(name) && !isPeer(name) && !isRun(name) && !isFile(name)
  })
  assert.deepEqual(unused, [])
})

const isDeclared = (name: string): boolean => declared.has(name) || declared.has(`@types/${name}`)

/** `@types/pg` has those of `pg`. */
function isTypesOfUsed(name: string): boolean {
  const typed = /^@types\/(.*)$/.exec(name)?.[1]
  return typed === 'node' || uses.some((use) => use.name === typed)
}

/** A package that is used does not work without it. */
const isPeer = (name: string): boolean =>
  uses.some((use) => declared.has(use.name) && manifestOf(use.name).peerDependencies?.[name] !== undefined)

function commandsOf(name: string): string[] {
  const { bin = {} } = manifestOf(name)
  return typeof bin === 'string' ? [name.split('/').at(-1)!] : Object.keys(bin)
}

const manifests = new Map<string, { bin?: string | object; peerDependencies?: Record<string, string> }>()
function manifestOf(name: string) {
  const known = manifests.get(name)
  if (known !== undefined) return known
  const path = `node_modules/${name}/package.json`
  const read = existsSync(join(ROOT, path)) ? json(path) : {}
  manifests.set(name, read)
  return read as { bin?: string | object; peerDependencies?: Record<string, string> }
}
