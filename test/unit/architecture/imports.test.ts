import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { shortestCircles } from '../../../src/devtools/lint/import-rules.ts'
import { parseSource } from '../../../src/devtools/lint/syntax.ts'
import {
  arrowsUpwards,
  DEVTOOLS_IMPORTERS,
  ENVIRONMENT_PASSERS,
  ENVIRONMENT_READER,
  forbids,
  LAYERS,
  layerOf,
  ONLY_IMPORTERS,
  PRELOADED,
} from './rules.ts'
import { type Edge, environmentReads, loadedBy, readSourceGraph } from './source-graph.ts'

void describe('the import rules', async () => {
  const graph = await readSourceGraph(['src', 'workers', 'domains'])

  for (const layer of LAYERS) {
    test(`${layer.folder} imports ${[...layer.may, ...(layer.types ?? [])].join(', ')}: ${layer.reason}`, () => {
      const from = `${layer.folder.replace('*', 'one')}a.ts`
      assert.equal(forbids(layer, { from, to: 'src/main.ts', typeOnly: true }), true, 'the layer objects to nothing')
      assert.deepEqual(graph.edges.filter((edge) => forbids(layer, edge)).map(shown), [])
    })
  }

  test('every folder of src is a layer, but for devtools, which import what they like', () => {
    const folders = graph.files.flatMap((file) => /^src\/[^/]+\//.exec(file)?.[0] ?? [])
    const bound = LAYERS.map(({ folder }) => folder.replace('*/', ''))
    assert.deepEqual(
      [...new Set(folders)].filter((folder) => !bound.includes(folder)),
      ['src/devtools/'],
    )
  })

  test('nothing that serves a request imports devtools', () => {
    const importers = graph.edges.filter(({ to }) => to.startsWith('src/devtools/')).map(({ from }) => from)
    assert.deepEqual(
      [...new Set(importers)].filter((from) => !DEVTOOLS_IMPORTERS.some((allowed) => from.startsWith(allowed))),
      [],
    )
  })

  for (const { target, importer, reason } of ONLY_IMPORTERS) {
    test(`${importer} alone imports ${target}: ${reason}`, () => {
      const importers = graph.edges.filter(({ to, typeOnly }) => to === target && !typeOnly).map(({ from }) => from)
      assert.deepEqual([...new Set(importers)], [importer])
    })
  }

  test(`${ENVIRONMENT_READER} alone reads process.env`, () => {
    const readers = new Set(graph.environment.map(({ from }) => from))
    for (const file of [...PRELOADED, ...ENVIRONMENT_PASSERS]) readers.delete(file)
    assert.deepEqual([...readers], [ENVIRONMENT_READER])
  })

  test('every way to read process.env is seen', async () => {
    const source = `import { env } from 'node:process'
const { env: e, ...rest } = process
globalThis.process.env.X
process['env']
other.env
const f = (from = process?.env) => from
`
    assert.deepEqual(environmentReads(await parseSource('a.ts', source)), [1, 2, 3, 4, 6])
  })

  test('runtime imports go in no circle', () => {
    assert.deepEqual(circlesOf(graph.edges.filter(({ typeOnly }) => !typeOnly)), [])
  })

  test('imports go in no circle, those of types included', () => {
    assert.deepEqual(
      circlesOf(graph.edges).filter((circle) => circle.includes('src/')),
      [],
    )
    const edge = (from: string, to: string): Edge => ({ from, to, typeOnly: false, line: 1 })
    assert.deepEqual(circlesOf([edge('a', 'b'), edge('b', 'c'), edge('c', 'b')]), ['b → c → b'])
  })

  test('no two folders import each other, not for types either', () => {
    assert.deepEqual(arrowsUpwards(graph.edges), [])
    const edge = (from: string, to: string): Edge => ({ from, to, typeOnly: true, line: 1 })
    const [down, up] = [
      edge('src/primary/http/a.ts', 'src/primary/events/b.ts'),
      edge('src/primary/events/c.ts', 'src/primary/http/d.ts'),
    ]
    assert.deepEqual(arrowsUpwards([down, down, up]), ['primary/events → primary/http: src/primary/events/c.ts:1'])
  })

  test('layers go in no longer circle either', () => {
    const ofSources = graph.edges.filter(({ from, to }) => from.startsWith('src/') && to.startsWith('src/'))
    const between = ofSources
      .map(({ from, to }) => ({ from: layerOf(from), to: layerOf(to) }))
      .filter(({ from, to }) => from !== to && from !== '' && to !== '')
    assert.ok(new Set(between.map(({ from }) => from)).size > 20)
    assert.deepEqual(circlesOf(between), [])
  })

  test('what a lane loads holds no part of the primary', () => {
    assert.ok(graph.files.includes('workers/lane.ts'), 'workers/lane.ts is missing')
    const ways = loadedBy(graph.edges, 'workers/lane.ts')
    const primary = graph.files.filter((file) => file.startsWith('src/primary/') || file === 'src/main.ts')
    assert.ok(primary.length > 1)
    assert.deepEqual(
      primary.flatMap((file) => ways.get(file) ?? []),
      [],
    )
  })

  test('every relative import names a file that is there, with its ending', () => {
    // A page's scripts lie beside those of `shared` when they are served, and beside lit-html.
    const ofShared = (to: string) => to.replace(/^(domains\/system\/assets)\/\w+\//, '$1/shared/')
    const isThere = (to: string) =>
      graph.files.includes(to) || graph.files.includes(ofShared(to)) || to.endsWith('/lit-html.js')
    const missing = graph.edges.filter(({ to }) => /^(?:src|workers|domains)\//.test(to) && !isThere(to))
    assert.deepEqual(missing.map(shown), [])
  })

  test('Atomics stand in src/transport/memory alone: whoever shares memory says there who writes which word', async () => {
    const users: string[] = []
    for (const file of graph.files) {
      if (/\bAtomics\./.test(await readFile(join(import.meta.dirname, '../../..', file), 'utf8'))) users.push(file)
    }
    assert.deepEqual(
      users.filter((file) => !file.startsWith('src/transport/memory/')),
      [],
    )
  })
})

/** Each as `a → b → a`. */
function circlesOf(edges: readonly Pick<Edge, 'from' | 'to'>[]): string[] {
  const next = new Map<string, string[]>()
  for (const { from, to } of edges) next.set(from, [...(next.get(from) ?? []), to])
  return shortestCircles(next).map((circle) => circle.join(' → '))
}

function shown({ from, line, to, typeOnly }: Edge): string {
  return `${from}:${line} imports ${to}${typeOnly ? ' (types)' : ''}`
}
