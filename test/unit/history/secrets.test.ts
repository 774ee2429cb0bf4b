/** Holds what is taken for a secret in whatever is recorded, and what is not. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import {
  isSecretName,
  KnownSecrets,
  marksOf,
  newSecret,
  withoutSecretStrings,
  withoutSecrets,
} from '../../../src/core/schemas/secret-fields.ts'
import { Payloads, shownValues } from '../../../src/history/payloads.ts'
import { exceptionOf } from '../../../src/tracing/attributes.ts'

test('secrets are known within texts, also when they are cut off, and what only looks alike stays', () => {
  const secret = newSecret()
  assert.match(secret, /^hds_[\w-]{39}$/)
  const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl'
  const cases: [string, string][] = [
    [`a ${secret} b`, 'a [secret] b'],
    [`a_${secret.slice(0, 12)}`, 'a_[secret]'],
    [`{"t":"${jwt}","u":1}`, '{"t":"[secret]","u":1}'],
    [`t=${jwt.slice(0, 40)}`, 't=[secret]'],
    ['x scrypt$32768$8$3$c2FsdA$a2V5', 'x [secret]'],
    ['x scrypt$32768$8$3', 'x [secret]'],
    ['$argon2id$v=19$m=65536,t=3,p=4$c2FsdA$aGFzaA', '[secret]'],
    ['$2b$12$R9h/cIPz0gi.URNNX3kh2OPST9/PgBkqquzi.Ss7KIUgO2t0jWMUW', '[secret]'],
    ['authorization: Basic YWRhOmxvdmVsYWNlMTgxNQ==', 'authorization: [secret]'],
    ['SELECT $2 FROM t WHERE a = $1 AND b = $23', 'SELECT $2 FROM t WHERE a = $1 AND b = $23'],
    ['Bearer authentication is required', 'Bearer authentication is required'],
    ['cursor eyJpZCI6MTIzNDU2fQ', 'cursor eyJpZCI6MTIzNDU2fQ'],
    ['scrypt is slow', 'scrypt is slow'],
    ['to postgres://shop:p%40ss@db.internal:5432/shop', 'to postgres://[secret]@db.internal:5432/shop'],
    ['http://localhost:8000/a@b is up', 'http://localhost:8000/a@b is up'],
  ]
  for (const [text, shown] of cases) assert.equal(withoutSecretStrings(text), shown)
})

test('a text that is made to be slow is not', () => {
  const startMs = performance.now()
  for (const part of ['eyJ', 'eyJaaaa.', 'hds_', 'scrypt$1', 'Bearer ', '://a:', '$2b$12$', '$argon2'])
    withoutSecretStrings(part.repeat(20_000))
  assert.ok(performance.now() - startMs < 1000, `${performance.now() - startMs} ms`)
})

test('a secret of one piece of work is hidden in its other texts', () => {
  const secrets = new KnownSecrets()
  for (const value of ['hunter22', 'hunter', 'abc', 4711]) secrets.add(value)
  assert.equal(secrets.hideIn('hunter22 and hunter hunt abc 4711'), '[secret] and [secret] hunt abc 4711')
  assert.deepEqual(
    ['hunter', 'abc', 4711, '4711'].map((value) => secrets.has(value)),
    [true, false, true, false],
  )
})

test('a span shows no secret of an error', () => {
  const secret = newSecret()
  const { message, attributes } = exceptionOf(new Error(`no ${secret}`))
  assert.equal(message, 'no [secret]')
  assert.ok(!JSON.stringify(attributes).includes(secret))
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
    'passcode',
    'card_cvc',
    'pin_code',
    'pinCode',
    'userOtp',
  ])
    assert.ok(isSecretName(name), name)
  for (const name of 'email discard pinned keyboard author span typing pinboard spin_count'.split(' '))
    assert.ok(!isSecretName(name), name)
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
