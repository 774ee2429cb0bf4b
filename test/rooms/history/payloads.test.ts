import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import type { PayloadPart, RequestDetail, WorkPart } from '#heddle'
import {
  isSecretName,
  KnownSecrets,
  marksOf,
  withoutSecretStrings,
  withoutSecrets,
} from '../../../src/core/schemas/secret-fields.ts'
import { Payloads, shownValues } from '../../../src/history/payloads.ts'
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

test('secrets are known by their marks, names and looks', () => {
  for (const name of [
    'password',
    'newPassword',
    'X-Api-Key',
    'client_secret',
    'refreshToken',
    'card',
    'cvc',
    'Authorization',
  ])
    assert.ok(isSecretName(name), name)
  for (const name of ['email', 'discard', 'pinned', 'keyboard', 'author', 'span']) assert.ok(!isSecretName(name), name)
  const tree: z.ZodType = z.object({
    note: z.string().meta({ secret: true }),
    get children() {
      return z.array(tree)
    },
  })
  const shape = z.object({
    tree,
    either: z.union([z.object({ a: z.string().meta({ format: 'password' }) }), z.object({ b: z.string() })]),
    pair: z.tuple([z.string(), z.string().meta({ writeOnly: true })]),
    record: z.record(z.string(), z.number().meta({ secret: true })),
  })
  const node = (note: string, ...children: object[]) => ({ note, children })
  const value = {
    tree: node('one', node('two', node('three'))),
    either: { a: 'four', b: 'b' },
    pair: ['first', 'five'],
    record: { x: 123456 },
    again: ['three', 123456, 'eyJhbGciOi.eyJzdWIi.c2ln', 'Bearer abc', '$argon2id$v=19$'],
  }
  const secret = '[secret]'
  assert.deepEqual(withoutSecrets(value, marksOf(shape, 'http')!), {
    tree: node(secret, node(secret, node(secret))),
    either: { a: secret, b: 'b' },
    pair: ['first', secret],
    record: { x: secret },
    again: [secret, secret, secret, secret, secret],
  })
})

test('the values of a statement are known by their columns', () => {
  const none = new KnownSecrets()
  const cases: [string, unknown[], unknown[]][] = [
    ['SELECT * FROM users WHERE email = $1 AND password_hash = $2', ['a', 'b'], ['a', '[secret]']],
    ['UPDATE "users" SET "api_key" = $2, name = $3 WHERE users.id = $1', [1, 'k', 'n'], [1, '[secret]', 'n']],
    ['INSERT INTO t (a, token) VALUES ($1, $2), ($3, $4)', [1, 'x', 3, 'y'], [1, '[secret]', 3, '[secret]']],
    ['SELECT 1 FROM sessions WHERE check_password($1, $2)', ['a', null], ['[secret]', null]],
    ['SELECT 1 FROM orders WHERE id IN ($1, $2)', [1, 2], [1, 2]],
  ]
  for (const [text, values, shown] of cases) assert.deepEqual(shownValues(text, values, none), shown, text)
})

/** What is kept of a request with this body, and of a statement that takes `value` and of an event with it, in the same piece of work. */
function keptOf(type: string, body: string, value: string) {
  const secrets = new KnownSecrets()
  const payloads = new Payloads([]).open(secrets)
  const request = { path: '/', hasQuery: false, query: '', headers: { 'content-type': type }, body: Buffer.from(body) }
  const template = { text: '/', hasParameters: false, read: () => {} }
  const work = {
    kind: 'request' as const,
    requestId: 'req_1',
    eventId: null,
    request,
    route: { template, options: {} },
  }
  const part = payloads.ofWork(work, null).body
  return {
    body: part?.text ?? '',
    values: payloads.values('INSERT INTO notes VALUES ($1, $2)', ['', [1, value]])?.text,
  }
}

test('secrets in texts of JSON, in text bodies and in multipart forms are known, also where they come up again', () => {
  const multipart = [
    '--b\r\nContent-Disposition: form-data; name="photo"; filename="a.bin"\r\n\r\npassword=not-this-one\r\n',
    '--b\r\nContent-Disposition: form-data; name="motto"\r\n\r\nper aspera\r\n',
    '--b\r\nContent-Disposition: form-data; name="passcode"\r\n\r\nhunter22\r\n--b--\r\n',
  ].join('')
  const cases: [string, string][] = [
    ['application/json', JSON.stringify({ note: 'I say hunter22', raw: JSON.stringify({ password: 'hunter22' }) })],
    ['application/json', JSON.stringify({ raw: JSON.stringify({ deep: JSON.stringify([{ card_cvc: 'hunter22' }]) }) })],
    ['text/plain', 'user=ada&passcode=hunter22&page=2'],
    ['text/plain;charset=utf-8', 'user: ada\npassword: "hunter22"\n'],
    ['text/plain', '{"user":"ada","pin_code":"hunter22","cut":'],
    ['', '{"user":"ada","pinCode":"hunter22"}'],
    ['application/octet-stream', 'user=ada;Password=hunter22;'],
    ['application/x-www-form-urlencoded', 'user=ada&new_password=hunter22'],
    ['multipart/form-data; boundary=b', multipart],
    ['multipart/form-data; boundary="b"', multipart],
  ]
  for (const [type, body] of cases) {
    const kept = keptOf(type, body, 'they said hunter22 twice')
    assert.ok(!kept.body.includes('hunter22'), `${type} ${body}: ${kept.body}`)
    assert.equal(kept.values, '[1,"they said [secret] twice"]', `${type} ${body}`)
  }
  const own = keptOf('text/plain', 'hello', JSON.stringify({ a: 'b', cvc: 'hunter22' })).values!
  assert.deepEqual(JSON.parse(own), [1, '{"a":"b","cvc":"[secret]"}'])
  const plain = keptOf('text/plain', 'page=2&sort=name', 'a{b').values
  assert.equal(plain, '[1,"a{b"]')
})

test('a password in a URL is a secret, and its host is none', () => {
  const shown = 'connect postgres://[secret]@db.internal:5432/shop failed, http://localhost:8000/a@b is up'
  assert.equal(
    withoutSecretStrings(
      'connect postgres://shop:p%40ss@db.internal:5432/shop failed, http://localhost:8000/a@b is up',
    ),
    shown,
  )
  for (const name of ['passcode', 'card_cvc', 'pin_code', 'pinCode', 'userOtp']) assert.ok(isSecretName(name), name)
  for (const name of ['pinned', 'span', 'typing', 'pinboard', 'spin_count']) assert.ok(!isSecretName(name), name)
})
