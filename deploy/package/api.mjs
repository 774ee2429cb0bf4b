// `npm run api` writes what plugins can name, and what that consists of, as one text; `npm run check` fails where the text is not that of the sources.
// So a change of the public types is seen in a review, and has its line under "Unreleased" in CHANGELOG.md.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSync } from 'oxc-parser'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const REPORT = 'deploy/package/api.txt'
const ENTRIES = {
  '#heddle': 'src/index',
  '#heddle/testing': 'src/devtools/testing/index',
  '#heddle/kysely': 'src/adapters/kysely',
  '#heddle/drizzle': 'src/adapters/drizzle',
}

/** Types of other folders are written where a name of theirs is exported, and are no one's to rely on otherwise. */
const PUBLIC = /^src\/(?:contracts|adapters|core\/schemas|devtools\/(?:testing|apidocs))\//

/** The declarations of a module, and where its names come from. */
class Module {
  /** By name; an interface, or an overloaded function, may have several. */
  declared = new Map()
  /** By local name. */
  imported = new Map()
  /** By exported name: a local name, or a name of another module. */
  exported = new Map()
  /** Modules all of whose names it exports. */
  stars = []

  constructor(file) {
    this.file = file
    this.text = readFileSync(`${file}.d.ts`, 'utf8')
    for (const node of parseSync(`${file}.d.ts`, this.text).program.body) this.#take(node)
  }

  #take(node) {
    const from = node.source?.value === undefined ? undefined : this.locate(node.source.value)
    if (node.type === 'ImportDeclaration') {
      for (const { local, imported, type } of node.specifiers)
        if (from !== undefined && type === 'ImportSpecifier')
          this.imported.set(local.name, { from, name: imported.name })
    } else if (node.type === 'ExportAllDeclaration') {
      if (from !== undefined) this.stars.push(from)
    } else if (node.type === 'ExportDefaultDeclaration') {
      this.#declare('default', node)
    } else if (node.type === 'ExportNamedDeclaration' && node.declaration === null) {
      for (const { local, exported } of node.specifiers) this.exported.set(exported.name, { from, name: local.name })
    } else this.#declare(null, node.declaration ?? node, node.type === 'ExportNamedDeclaration')
  }

  #declare(given, node, isExported = true) {
    const names = given === null ? (node.declarations ?? [node]).map(({ id }) => id?.name) : [given]
    for (const name of names.filter(Boolean)) {
      this.declared.set(name, [...(this.declared.get(name) ?? []), node])
      if (isExported) this.exported.set(name, { from: undefined, name })
    }
  }

  /** The path of another module here without its ending; undefined for a package. */
  locate(specifier) {
    return specifier.startsWith('.') ? resolve(dirname(this.file), specifier).replace(/\.[cm]?[jt]s$/, '') : undefined
  }
}

class Report {
  #modules = new Map()
  /** By module and name. */
  #reached = new Map()

  constructor(folder) {
    this.folder = folder
  }

  text() {
    const lists = Object.entries(ENTRIES).map(([name, path]) => {
      const names = this.#namesOf(join(this.folder, path))
      for (const each of names) this.#reachExport(join(this.folder, path), each, true)
      return `${name}\n${names.map((each) => `  ${each}`).join('\n')}\n`
    })
    const parts = [...this.#reached.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
    return `Public names and types. Written by npm run api.\n\n${lists.join('\n')}\n${parts.map(({ text }) => text).join('\n')}`
  }

  #module(file) {
    if (!this.#modules.has(file)) this.#modules.set(file, new Module(file))
    return this.#modules.get(file)
  }

  #namesOf(file) {
    const { exported, stars } = this.#module(file)
    return [...new Set([...exported.keys(), ...stars.flatMap((each) => this.#namesOf(each))])].sort()
  }

  #reachExport(file, name, isNamed = false) {
    const { exported, stars } = this.#module(file)
    const found = exported.get(name)
    if (found === undefined) for (const each of stars) this.#reachExport(each, name, isNamed)
    else if (found.from === undefined) this.#reachLocal(file, found.name, isNamed)
    else this.#reachExport(found.from, found.name, isNamed)
  }

  #reachLocal(file, name, isNamed = false) {
    const { declared, imported, text } = this.#module(file)
    const source = imported.get(name)
    if (source !== undefined) return this.#reachExport(source.from, source.name, isNamed)
    const nodes = declared.get(name)
    const key = `${relative(this.folder, file)}.ts ${name}`
    if (nodes === undefined || this.#reached.has(key) || !(isNamed || PUBLIC.test(key))) return
    const texts = nodes.map(({ start, end }) => text.slice(start, end).replace(/^declare /, ''))
    this.#reached.set(key, { key, text: `// ${key}\n${texts.join('\n')}\n` })
    for (const node of nodes) this.#walk(file, node)
  }

  #walk(file, node) {
    if (Array.isArray(node)) for (const each of node) this.#walk(file, each)
    if (typeof node !== 'object' || node === null || Array.isArray(node)) return
    if (node.type === 'Identifier') this.#reachLocal(file, node.name)
    if (node.type === 'TSImportType') {
      const from = this.#module(file).locate(node.source?.value ?? node.argument?.literal?.value ?? '')
      if (from !== undefined && node.qualifier?.name !== undefined) this.#reachExport(from, node.qualifier.name)
    }
    for (const [name, value] of Object.entries(node)) {
      // The name of a member is none of a type.
      if (typeof value === 'object' && (name !== 'key' || node.computed)) this.#walk(file, value)
    }
  }
}

function report() {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-api-'))
  try {
    const types = ['--noEmit', 'false', '--declaration', '--emitDeclarationOnly', '--removeComments']
    const places = ['--rootDir', ROOT, '--outDir', folder]
    const tsc = join(ROOT, 'node_modules/.bin/tsc')
    const { status, stdout } = spawnSync(tsc, ['-p', join(ROOT, 'deploy/package'), ...types, ...places], {
      encoding: 'utf8',
    })
    if (status !== 0) throw new Error(stdout)
    return new Report(folder).text()
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const git = (...args) => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })

/** The text of the last release; null where none is there. */
function released() {
  try {
    return git('show', `${git('describe', '--tags', '--abbrev=0', '--match', 'v*').trim()}:${REPORT}`)
  } catch {
    return null
  }
}

function check(text) {
  if (readFileSync(join(ROOT, REPORT), 'utf8') !== text)
    return `The public types are not those of ${REPORT}: run npm run api, look at what has changed, and say it in CHANGELOG.md`
  const before = released()
  const changes = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8').split(/^## /m)
  const unreleased = changes.find((each) => each.startsWith('Unreleased'))
  if (before !== null && before !== text && !/^- /m.test(unreleased ?? ''))
    return 'The public types are not those of the last release, and CHANGELOG.md has no line under "Unreleased"'
  return null
}

const text = report()
if (process.argv.includes('--check')) {
  const fault = check(text)
  if (fault !== null) console.error(fault)
  process.exitCode = fault === null ? 0 : 1
} else writeFileSync(join(ROOT, REPORT), text)
