import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { PayloadPart, RequestDetail, WorkPart } from '#heddle'
import { temporaryFolder } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'

const DOMAINS = [SHIPPED, fileURLToPath(new URL('./payload-fixtures', import.meta.url))]
const SECRETS = ['correct horse battery', 'per aspera', '1815-12-10', 'the-new-token', 'path-secret', 'query-secret']

interface Kept {
  service: Heddle
  works: WorkPart[]
  /** Everything in the file. */
  file: string
}

/** Opens an account, and waits until it is kept with what it has caused. */
async function openAccount(t: TestContext, env: Record<string, string>): Promise<Kept> {
  const folder = temporaryFolder(t)
  const path = join(folder, 'history.db')
  const all = {
    HISTORY_ENABLED: 'true',
    HISTORY_PATH: path,
    HISTORY_SAMPLE: '1',
    AUTH_SECRET_KEY: 'x'.repeat(40),
    ...env,
  }
  const service = await startHeddle(t, { domains: DOMAINS, lanes: 1, env: all })
  const [password, motto, birthday] = SECRETS
  const account = { email: 'ada@example.com', password, motto, owner: { city: 'London', birthday } }
  const { headers, status } = await service.post('/accounts/path-secret?page=2&page=3&api_key=query-secret', account)
  assert.equal(status, 201)
  const parts = await until(async () => {
    const { body } = await service.json(`/system/requests/${headers.get('x-request-id')}`)
    const found = ((body as RequestDetail).parts ?? []).filter((part) => part.type === 'work')
    return found.length === 2 ? found : undefined
  }, 'the request and its event are kept')
  const files = [path, `${path}-wal`].filter((each) => existsSync(each))
  return { service, works: parts, file: files.map((each) => readFileSync(each, 'latin1')).join('') }
}

const held = (part: PayloadPart | undefined): unknown => JSON.parse(part!.text)

test('in development payloads are kept, and no secret', async (t) => {
  const { service, works, file } = await openAccount(t, {})
  const [request, event] = works
  assert.deepEqual(held(request!.params), { reset_token: '[secret]' })
  assert.deepEqual(held(request!.query), { page: ['2', '3'], api_key: '[secret]' })
  assert.deepEqual(held(request!.body), {
    email: 'ada@example.com',
    password: '[secret]',
    motto: '[secret]',
    owner: { city: 'London', birthday: '[secret]' },
  })
  assert.equal(request!.body!.type, 'application/json')
  const { text, bytes } = request!.answer!
  assert.match(text, /^\{"email":"ada@example\.com","access_token":"\[secret\]","said":"\[secret\]","long":"x+…$/)
  assert.ok(text.length <= 4097 && bytes! > 5000, `${text.length} of ${bytes}`)
  const insert = request!.calls.find(({ statement }) => statement?.startsWith('INSERT'))!
  assert.deepEqual(held(insert.values), ['ada@example.com', 'London', '[secret]', '[secret]'])
  const published = { email: 'ada@example.com', motto: '[secret]' }
  assert.deepEqual(held(request!.calls.find(({ method }) => method === 'publish')!.payload), published)
  assert.deepEqual(held(event!.payload), published)
  for (const secret of SECRETS) assert.ok(!file.includes(secret), secret)
  const [row] = (await service.json('/system/requests?route=/accounts')).body
  assert.equal(row.path, '/accounts/[secret]')
})

test('in production no payload is kept', async (t) => {
  const { works, file } = await openAccount(t, { NODE_ENV: 'production' })
  for (const { params, query, body, answer, payload, calls } of works) {
    const payloads = [params, query, body, answer, payload, ...calls.flatMap((call) => [call.values, call.payload])]
    assert.ok(payloads.every((part) => part === undefined))
  }
  for (const text of [...SECRETS, 'ada@example.com', 'London']) assert.ok(!file.includes(text), text)
})
