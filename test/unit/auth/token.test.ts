import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { SignJWT } from 'jose'
import AuthTool from '../../../src/tools/auth/index.ts'
import { buildTool, SECRET } from '../../support/tool-runtime.ts'

const { createToken, validateToken } = buildTool(AuthTool).tool.api()
const nowSec = () => Math.floor(Date.now() / 1000)

const encode = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/** A token made by hand, so that it can be anything. */
function forge(claims: unknown, header: unknown = { alg: 'HS256' }, secret: string | Buffer = SECRET, hash = 'sha256') {
  const signed = `${encode(header)}.${encode(claims)}`
  return `${signed}.${createHmac(hash, secret).update(signed).digest('base64url')}`
}
const good = () => ({ sub: 'u1', exp: nowSec() + 60 })

test('a token comes back as its claims', async () => {
  const token = await createToken({ sub: 'u1', roles: ['admin'] })
  const claims = (await validateToken(token))!
  assert.deepEqual([claims.sub, claims.roles], ['u1', ['admin']])
  assert.equal(claims.exp - claims.iat!, 3600)
})

test('the lifetime can be given, and old claims can be signed anew', async () => {
  const claims = (await validateToken(await createToken({ sub: 'u1', exp: 5, iat: 5 }, { expiresInSec: 10 })))!
  assert.equal(claims.exp - claims.iat!, 10)
  assert.ok(claims.exp > nowSec())
})

test('a token signed elsewhere with the same secret is valid', async () => {
  assert.equal((await validateToken(forge(good())))?.sub, 'u1')
  const byJose = await new SignJWT(good()).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(SECRET))
  assert.equal((await validateToken(byJose))?.sub, 'u1')
})

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const publicPem = publicKey.export({ type: 'spki', format: 'pem' })

const bad: Record<string, () => unknown> = {
  'alg none with an empty signature': () => `${encode({ alg: 'none' })}.${encode(good())}.`,
  'alg none with a signature': () => forge(good(), { alg: 'none' }),
  'alg nOnE': () => forge(good(), { alg: 'nOnE' }),
  'no alg': () => forge(good(), {}),
  HS512: () => forge(good(), { alg: 'HS512' }, SECRET, 'sha512'),
  'HS384 said, HS256 done': () => forge(good(), { alg: 'HS384' }),
  'RS256 said, HMAC done': () => forge(good(), { alg: 'RS256' }),
  'HMAC with a public key as secret': () => forge(good(), { alg: 'HS256' }, publicPem as string),
  'another secret': () => forge(good(), { alg: 'HS256' }, `${SECRET}x`),
  'an empty secret': () => forge(good(), { alg: 'HS256' }, ''),
  expired: () => forge({ sub: 'u1', exp: nowSec() - 1 }),
  'expiring now': () => forge({ sub: 'u1', exp: nowSec() }),
  'no exp': () => forge({ sub: 'u1' }),
  'exp as text': () => forge({ sub: 'u1', exp: String(nowSec() + 60) }),
  'exp null': () => forge({ sub: 'u1', exp: null }),
  'nbf in the future': () => forge({ ...good(), nbf: nowSec() + 30 }),
  'no sub': () => forge({ exp: nowSec() + 60 }),
  'an empty sub': () => forge({ ...good(), sub: '' }),
  'sub as number': () => forge({ ...good(), sub: 5 }),
  'claims that are an array': () => forge([good()]),
  'claims that are no JSON': () => forge('{"sub":"u1",'),
  'claims that are null': () => forge(null),
  'a critical header': () => forge(good(), { alg: 'HS256', crit: ['b64'], b64: false }),
  'a critical header that the library knows': () => forge(good(), { alg: 'HS256', crit: ['b64'], b64: true }),
  'an unknown critical header': () => forge(good(), { alg: 'HS256', crit: ['x'], x: 1 }),
  padding: () => `${forge(good())}=`,
  'a trailing blank': () => `${forge(good())} `,
  'a leading blank': () => ` ${forge(good())}`,
  'a line break inside': () => forge(good()).replace('.', '.\n'),
  'a trailing dot': () => `${forge(good())}.`,
  'two parts': () => forge(good()).split('.').slice(0, 2).join('.'),
  'base64 instead of base64url': () => `${forge(good()).slice(0, -1)}+`,
  'loose last bits': () => looseBits(forge(good())),
  'a changed payload': () => {
    const [header, , signature] = forge(good()).split('.')
    return `${header}.${encode({ ...good(), sub: 'root' })}.${signature}`
  },
  'a cut signature': () => forge(good()).slice(0, -4),
  'an empty text': () => '',
  dots: () => '..',
  'a huge token': () => forge({ ...good(), pad: 'x'.repeat(8192) }),
  'a megabyte of letters': () => 'a'.repeat(1024 * 1024),
  undefined: () => undefined,
  null: () => null,
  'a number': () => 5,
  'an object': () => ({ toString: () => forge(good()) }),
  'a text object': () => new String(forge(good())),
}
for (const [what, make] of Object.entries(bad)) {
  test(`validateToken says null to ${what}`, async () => assert.equal(await validateToken(make() as string), null))
}

/** The same bytes with another last letter: the last of 43 letters holds two bits that no byte uses. */
function looseBits(token: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const changed = token.slice(0, -1) + alphabet[alphabet.indexOf(token.at(-1)!) ^ 1]
  const bytes = (text: string) => Buffer.from(text.split('.')[2]!, 'base64url')
  assert.deepEqual(bytes(changed), bytes(token))
  return changed
}

test('a token signed with an RSA key is null', async () => {
  const token = await new SignJWT(good()).setProtectedHeader({ alg: 'RS256' }).sign(privateKey)
  assert.equal(await validateToken(token), null)
})

test('an expired token was valid before', async () => {
  const token = await createToken({ sub: 'u1' }, { expiresInSec: 1 })
  assert.equal((await validateToken(token))?.sub, 'u1')
  const expSec = nowSec() + 2
  while (nowSec() < expSec) await new Promise((resolve) => setTimeout(resolve, 50))
  assert.equal(await validateToken(token), null)
})

for (const [what, claims, options] of [
  ['no sub', {}, undefined],
  ['an empty sub', { sub: '' }, undefined],
  ['a number as sub', { sub: 5 }, undefined],
  ['no claims', undefined, undefined],
  ['a bigint', { sub: 'u1', n: 1n }, undefined],
  ['claims that make the token too long', { sub: 'u1', pad: 'x'.repeat(8192) }, undefined],
  ['a lifetime of 0', { sub: 'u1' }, { expiresInSec: 0 }],
  ['a negative lifetime', { sub: 'u1' }, { expiresInSec: -1 }],
  ['half a second', { sub: 'u1' }, { expiresInSec: 0.5 }],
  ['an endless lifetime', { sub: 'u1' }, { expiresInSec: Number.POSITIVE_INFINITY }],
  ['a lifetime as text', { sub: 'u1' }, { expiresInSec: '60' }],
] as const) {
  test(`createToken refuses ${what}`, async () => {
    await assert.rejects(createToken(claims as never, options as never), { code: 'AUTH_INVALID_INPUT' })
  })
}

test('the tool does not boot with a short secret or a PEM', () => {
  for (const authSecretKey of ['short', String(publicPem)]) {
    const { tool } = buildTool(AuthTool, { settings: { authSecretKey } })
    assert.throws(() => tool.boot(), { code: 'CONFIG_INVALID' })
  }
  assert.doesNotThrow(() => buildTool(AuthTool).tool.boot())
})
