import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { OpenApiDocument } from '#heddle'
import { folderOf } from '../../support/folder.ts'
import { PageModules } from '../../support/page-modules.ts'
import { shareService } from '../../support/shared-service.ts'
import { PAGE } from './fixtures/domains.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')

interface Shown {
  id: string
  kind: string
}

interface Sample {
  name: string
  text: string
}

interface Filled {
  values: Map<string, string>
  type?: string
  body?: string
  files?: { name: string }[]
}

/** What the page makes of a document. */
function pageModules(): {
  operationsOf(document: object): Shown[]
  samplesOf(operation: Shown, input: Filled, context: object): Sample[]
  schemasOf(document: object): object
} {
  const modules = new PageModules('docs')
  const { operationsOf } = modules.load('catalogue')
  const { samplesOf } = modules.load('samples')
  const { SchemaView } = modules.load('schema')
  return { operationsOf, samplesOf, schemasOf: (document) => new SchemaView(document) }
}

const AsyncFunction = (async () => {}).constructor as new (...parts: string[]) => (...given: unknown[]) => Promise<void>
const NOTHING: Filled = { values: new Map() }
const TALK = JSON.stringify({ room: "it's", speaker: { nickname: 'Ada', email: 'ada@example.com' }, minutes: 5 })

const service = shareService(PAGE)

test('samples of requests', async (t) => {
  const heddle = service()
  const document: OpenApiDocument = (await heddle.json('/system/openapi.json')).body
  const { operationsOf, samplesOf, schemasOf } = pageModules()
  const operations = operationsOf(document)
  const context = { schemas: schemasOf(document), origin: heddle.url, token: 'good' }
  const sampleOf = (id: string, name: string, input = NOTHING) => {
    const samples = samplesOf(operations.find((operation) => operation.id === id)!, input, context)
    return samples.find((sample) => sample.name === name)!.text
  }
  const client = await (await heddle.fetch('/system/client.ts?system=true')).text()

  await t.test(
    'the strictest compiler takes the sample of every operation, beside the client of the service',
    async (t) => {
      const forms = ['application/x-www-form-urlencoded', 'multipart/form-data', 'application/octet-stream']
      const texts: Record<string, string> = { 'client.ts': client }
      for (const operation of operations) {
        texts[`${operation.id}.ts`] = samplesOf(operation, NOTHING, context).at(-1)!.text
      }
      for (const [index, type] of forms.entries()) {
        for (const id of ['postOddAnything', 'postOddForms'].slice(0, type.endsWith('stream') ? 1 : 2)) {
          const files = type.startsWith('multipart') ? [{ name: 'a.txt' }, { name: 'b.txt' }] : []
          const input = { values: new Map(), type, body: '{"name":"Ada","kind":"a"}', files }
          texts[`${id}-${index}.ts`] = sampleOf(id, 'client', input)
        }
      }
      const keyed = { values: new Map([['header:Idempotency-Key', 'mine']]), body: TALK }
      texts['keyed.ts'] = sampleOf('postTalks', 'client', keyed)
      const asked = new Map([
        ['path:room', 'tea'],
        ['query:limit', '5'],
        ['query:tags', 'a\nb'],
      ])
      texts['asked.ts'] = sampleOf('getTalksByRoom', 'client', { values: asked })
      assert.match(texts['asked.ts'], /params: \{ room: 'tea' \},\s+query: \{ limit: 5, tags: \['a', 'b'\] \}/)
      assert.match(texts['keyed.ts'], /room: 'it\\'s',[\s\S]*\{ idempotencyKey: 'mine' \}/)
      const folder = await folderOf(t, texts)
      const options =
        '--strict --noEmit --target es2022 --module nodenext --allowImportingTsExtensions --types node --lib es2023'
      const roots = ['--typeRoots', join(ROOT, 'node_modules/@types')]
      try {
        execFileSync(process.execPath, [TSC, ...options.split(' '), ...roots, ...Object.keys(texts)], { cwd: folder })
      } catch (error) {
        assert.fail(String((error as { stdout: Buffer }).stdout))
      }
    },
  )

  await t.test('curl, fetch and the client send the same, and get the same answer', async (t) => {
    const inputs: Record<string, Filled> = {
      postTalks: { values: new Map([['header:Idempotency-Key', 'sampled']]), type: 'application/json', body: TALK },
      getTalksByRoom: {
        values: new Map([
          ['path:room', 'a/b ü'],
          ['query:limit', '7'],
        ]),
      },
      postOddForms: { values: new Map(), type: 'multipart/form-data', body: '{"name":"Ada @ <home>"}' },
      putOddBytes: { values: new Map(), body: 'some text' },
      deleteOddPairsByXByY: {
        values: new Map([
          ['path:left', '1'],
          ['path:right', 'two'],
        ]),
      },
    }
    const folder = await folderOf(t, { 'client.ts': client })
    const { Client } = await import(join(folder, 'client.ts'))
    for (const [id, input] of Object.entries(inputs)) {
      const curl = execFileSync('sh', ['-c', sampleOf(id, 'curl', input)], { stdio: ['ignore', 'pipe', 'ignore'] })
      const wanted = JSON.parse(String(curl).split('\r\n\r\n').at(-1)!)
      assert.ok(wanted.success !== false, String(curl))
      for (const name of ['fetch', 'client']) {
        const printed: unknown[] = []
        const text = sampleOf(id, name, input).replace(/^import .*\n/, '')
        await new AsyncFunction('Client', 'console', text)(Client, { log: (...all: unknown[]) => printed.push(...all) })
        const answer = printed.at(-1)
        assert.deepEqual(typeof answer === 'string' ? JSON.parse(answer) : answer, wanted, `${id} by ${name}`)
      }
    }
  })

  await t.test('where a key is wanted and none is given, the client makes its own', () => {
    assert.match(sampleOf('postTalks', 'curl'), /-H 'idempotency-key: [0-9a-f-]{36}'/)
    assert.doesNotMatch(sampleOf('postTalks', 'client'), /idempotencyKey/)
  })

  await t.test('a stream is read as a stream, a WebSocket as one', () => {
    assert.match(sampleOf('getTalksTicks', 'curl'), /^curl -N '.*\/talks\/ticks'\n$/)
    assert.match(sampleOf('getTalksTicks', 'EventSource'), /new EventSource\('.*\/talks\/ticks'\)/)
    assert.match(sampleOf('getTalksFewTicks', 'fetch'), /authorization: 'Bearer good'/)
    assert.match(sampleOf('getTalksTicks', 'client'), /for await \(const frame of client\.getTalksTicks\(\)\)/)
    const input = { values: new Map([['path:room', 'tea']]) }
    assert.match(
      sampleOf('getTalksByRoomSecret', 'WebSocket', input),
      /ws:.*\/tea\/secret\?as=host', \['bearer', 'good'\]/,
    )
    assert.match(sampleOf('getTalksByRoomSecret', 'client', input), /await client\.getTalksByRoomSecret\(/)
  })
})
