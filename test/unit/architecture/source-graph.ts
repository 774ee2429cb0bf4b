import { readdir, readFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import path from 'node:path'
import type { Node } from 'oxc-parser'
import { moduleImports } from '../../../src/devtools/lint/imports.ts'
import { parseSource, type Syntax, staticKey, unwrap, walk } from '../../../src/devtools/lint/syntax.ts'

const ROOT = path.resolve(import.meta.dirname, '../../..')

/** One import; `to` is a path from the repository's root, `node:<module>`, or `package:<name>`. */
export interface Edge {
  from: string
  line: number
  to: string
  typeOnly: boolean
}

export interface SourceGraph {
  files: string[]
  edges: Edge[]
  /** The reads of `process.env`. */
  environment: Array<{ from: string; line: number }>
}

/** Parses every source file below the folders, given from the repository's root. */
export async function readSourceGraph(folders: readonly string[]): Promise<SourceGraph> {
  const graph: SourceGraph = { files: [], edges: [], environment: [] }
  for (const folder of folders) graph.files.push(...(await sourcesBelow(folder)))
  for (const from of graph.files) {
    const file = path.join(ROOT, from)
    const syntax = await parseSource(file, await readFile(file, 'utf8'))
    for (const { specifier, line, typeOnly } of moduleImports(syntax)) {
      graph.edges.push({ from, line, to: targetOf(from, specifier), typeOnly })
    }
    for (const line of environmentReads(syntax)) graph.environment.push({ from, line })
  }
  return graph
}

/** Lines that read `process.env`, directly, by destructuring, or as `env` of `node:process`. */
export function environmentReads(syntax: Syntax): number[] {
  const lines: number[] = []
  walk(syntax.program, (node) => {
    if (readsEnvironment(node)) lines.push(syntax.lineOf(node.start))
  })
  return lines
}

function readsEnvironment(node: Node): boolean {
  switch (node.type) {
    case 'MemberExpression':
      return staticKey(node.property, node.computed) === 'env' && isProcess(node.object)
    case 'VariableDeclarator':
      return (
        node.id.type === 'ObjectPattern' &&
        node.init !== null &&
        isProcess(node.init) &&
        node.id.properties.some((property) => {
          return property.type !== 'Property' || staticKey(property.key, property.computed) === 'env'
        })
      )
    case 'ImportDeclaration':
      return (
        /^(?:node:)?process$/.test(node.source.value) &&
        node.specifiers.some((specifier) => {
          return specifier.type === 'ImportSpecifier' && staticKey(specifier.imported, false) === 'env'
        })
      )
    default:
      return false
  }
}

function isProcess(expression: Node): boolean {
  const node = unwrap(expression)
  if (node.type === 'MemberExpression') return staticKey(node.property, node.computed) === 'process'
  return node.type === 'Identifier' && node.name === 'process'
}

export function targetOf(from: string, specifier: string): string {
  if (specifier === '#heddle') return 'src/index.ts'
  if (specifier.startsWith('.')) return path.posix.join(path.posix.dirname(from), specifier)
  if (isBuiltin(specifier)) return specifier.startsWith('node:') ? specifier : `node:${specifier}`
  const parts = specifier.split('/')
  return `package:${parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/')}`
}

/** Every file that is loaded with `entry`, each with the first path of imports that leads to it. */
export function loadedBy(edges: readonly Edge[], entry: string): Map<string, string> {
  const ways = new Map([[entry, entry]])
  for (const [file, way] of ways) {
    for (const { from, to, typeOnly } of edges) {
      if (from === file && !typeOnly && !ways.has(to)) ways.set(to, `${way} → ${to}`)
    }
  }
  return ways
}

async function sourcesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(path.join(ROOT, folder), { withFileTypes: true, recursive: true })
  return entries
    .filter((entry) => entry.isFile() && /\.[cm]?[jt]s$/.test(entry.name))
    .map((entry) => path.relative(ROOT, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'))
    .sort()
}
