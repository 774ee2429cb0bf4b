import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { OpenApiDocument } from '#heddle'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'

const ZOD = JSON.stringify(fileURLToPath(import.meta.resolve('zod')))

const plugin = (thread: string): string => `
import { z } from ${ZOD}
export default class Desk {
  static thread = '${thread}'
  constructor({ http }) {
    const at = (method, path, options, handler) => http.addEndpoint('/${thread}' + path, method, handler, options)
    const response = z.object({ success: z.literal(true), id: z.number() })
    const made = ({ how }, context) => {
      if (how === 'failed') return { success: false, error: 'no' }
      if (how === 'chosen') context.setStatus(202)
      if (how === 'moved') return context.redirect('/elsewhere')
      if (how === 'thrown') throw Object.assign(new Error('x'))
      if (how === 'bytes') return context.sendBinary(Buffer.from('abc'), 'text/plain')
      if (how === 'stream') return (async function* () { yield 'a' })()
      if (how === 'later') return Promise.resolve({ success: true, id: 1 })
      return { success: true, id: 1 }
    }
    at('POST', '/things', { status: 201, response }, made)
    at('GET', '/things', { status: 203 }, made)
    at('GET', '/plain', {}, made)
    at('DELETE', '/things', { status: 204 }, (data) => data.how === 'failed' ? made(data) : undefined)
    at('POST', '/guarded', { status: 201, guards: [({ }, { query }) => query.how === 'guard' ? { from: 'guard' } : undefined] }, made)
    at('PUT', '/guarded', { status: 201, guards: [() => ({ success: false, error: 'guard' })] }, made)
  }
}`

async function start(t: TestContext) {
  const domains = await folderOf(t, {
    'domains/a/plugins/in-lane.ts': plugin('worker'),
    'domains/a/plugins/in-primary.ts': plugin('primary').replace('class Desk', 'class Counter'),
  })
  return startHeddle(t, { domains: [`${domains}/domains`], lanes: 1, env: { SYSTEM_DOMAIN: 'true' } })
}

test('status: is that of the answer, unless the handler, a guard or an error has another', {
  timeout: 60_000,
}, async (t) => {
  const heddle = await start(t)
  for (const thread of ['worker', 'primary']) {
    const send = async (method: string, path: string) => {
      const response = await heddle.fetch(`/${thread}${path}`, { method, redirect: 'manual' })
      return [response.status, await response.text()]
    }
    const thing = '{"success":true,"id":1}'
    for (const [method, path, status, text] of [
      ['POST', '/things', 201, thing],
      ['POST', '/things?how=later', 201, thing],
      ['POST', '/things?how=failed', 400, '{"success":false,"error":"no"}'],
      ['POST', '/things?how=chosen', 202, thing],
      ['POST', '/things?how=moved', 302, ''],
      ['POST', '/things?how=thrown', 500, '{"success":false,"error":"Internal server error"}'],
      ['POST', '/things?how=bytes', 201, 'abc'],
      ['POST', '/things?how=stream', 201, 'a'],
      ['GET', '/things', 203, thing],
      ['HEAD', '/things', 203, ''],
      ['GET', '/plain', 200, thing],
      ['DELETE', '/things', 204, ''],
      ['DELETE', '/things?how=failed', 400, '{"success":false,"error":"no"}'],
      ['POST', '/guarded', 201, thing],
      ['POST', '/guarded?how=guard', 200, '{"from":"guard"}'],
      ['PUT', '/guarded', 400, '{"success":false,"error":"guard"}'],
    ] as const)
      assert.deepEqual(await send(method, path), [status, text], `${thread} ${method} ${path}`)
  }
  const { paths }: OpenApiDocument = (await heddle.json('/system/openapi.json')).body
  const successes = (path: string, method: string): string[] =>
    Object.keys(paths[path]![method]!.responses).filter((status) => status.startsWith('2'))
  assert.deepEqual(successes('/worker/things', 'post'), ['201'])
  assert.deepEqual(successes('/worker/plain', 'get'), ['200'])
  assert.deepEqual(successes('/primary/things', 'delete'), ['204'])
  assert.equal((paths['/primary/things']!.delete!.responses['204'] as { content?: object }).content, undefined)
  const client = await (await heddle.fetch('/system/client.ts')).text()
  assert.match(client, /`POST \/worker\/things` of a\.Desk; it answers 201/)
  assert.match(client, /deleteWorkerThings\(.*\): Call<undefined, /)
})

test('status: a route is refused with one that is no success, or a body that 204 has not', {
  timeout: 60_000,
}, async (t) => {
  const bad = ['199', '300', '404', '205', '206', '200.5', '"201"', '204, response: schema']
  const schema = "{ '~standard': { version: 1, vendor: 'own', validate: (value) => ({ value }) } }"
  const files = Object.fromEntries(
    bad.map((status, index) => [
      `domains/a/plugins/odd-${index}.ts`,
      `const schema = ${schema}\nexport default class Odd${index} { constructor({ http }) { http.get('/odd${index}', { status: ${status} }, () => 1) } }`,
    ]),
  )
  files['domains/a/plugins/odd-stream.ts'] =
    "export default class OddStream { constructor({ http }) { http.addStream('/odd', () => {}, { status: 201 }) } }"
  const folder = await folderOf(t, files)
  const heddle = await startHeddle(t, {
    domains: [`${folder}/domains`],
    lanes: 1,
    env: { SYSTEM_DOMAIN: 'true' },
  })
  const { plugins } = (await heddle.json('/system/status')).body
  for (const name of [...bad.map((_, index) => `a.Odd${index}`), 'a.OddStream']) {
    assert.equal(plugins[name]?.status, 'DEAD', name)
    assert.match(plugins[name].error, /status/, name)
  }
})
