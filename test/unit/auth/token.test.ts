import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { SignJWT } from 'jose'
import type { Claims } from '../../../src/contracts/auth.ts'
import { loadSettings } from '../../../src/core/config/load.ts'
import AuthTool from '../../../src/tools/auth/index.ts'
import { RevokedTokens, revocationId } from '../../../src/tools/auth/revocations.ts'
import type { Generation } from '../../../src/transport/memory/words.ts'
import { BAD, token } from '../../support/bad-tokens.ts'
import { faultsOf as faultsIn } from '../../support/config-faults.ts'
import { buildTool, SECRET } from '../../support/tool-runtime.ts'

const { createToken, validateToken } = buildTool(AuthTool).tool.api()

const nowSec = () => Math.floor(Date.now() / 1000)

const forge = (claims: object): string => token({ alg: 'HS256' }, claims)

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

const ODD: Record<string, () => unknown> = {
  'expiring now': () => forge({ sub: 'u1', exp: nowSec() }),
  'a trailing blank': () => `${forge(good())} `,
  'a leading blank': () => ` ${forge(good())}`,
  'a line break inside': () => forge(good()).replace('.', '.\n'),
  'a huge token': () => forge({ ...good(), pad: 'x'.repeat(8192) }),
  'a megabyte of letters': () => 'a'.repeat(1024 * 1024),
  undefined: () => undefined,
  null: () => null,
  'a number': () => 5,
  'an object': () => ({ toString: () => forge(good()) }),
  'a text object': () => new String(forge(good())),
}

for (const [what, make] of Object.entries(ODD)) {
  test(`validateToken says null to ${what}`, async () => assert.equal(await validateToken(make() as string), null))
}

for (const [why, tokens] of Object.entries(BAD)) {
  test(`validateToken says null to tokens with ${why}`, async () => {
    for (const token of tokens) assert.equal(await validateToken(token), null, token.slice(0, 200))
  })
}

test('an expired token was valid before', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
  const token = await createToken({ sub: 'u1' }, { expiresInSec: 1 })
  assert.equal((await validateToken(token))?.sub, 'u1')
  t.mock.timers.tick(2_000)
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
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  for (const authSecretKey of ['short', String(publicKey.export({ type: 'spki', format: 'pem' }))]) {
    const { tool } = buildTool(AuthTool, { settings: { authSecretKey } })
    assert.throws(() => tool.boot(), { code: 'CONFIG_INVALID' })
  }
  assert.doesNotThrow(() => buildTool(AuthTool).tool.boot())
})

const VALID = 1500

const claimsOf = (jti: string) => ({ sub: 'u', iss: 'us', jti, exp: 0 })

test('beyond a thousand revoked tokens those whose time is over are forgotten, and no other', async () => {
  const generation = { current: 1 }
  const nowSec = Date.now() / 1000
  const pages = [
    Array.from({ length: VALID }, (_, n) => [revocationId(claimsOf(`valid-${n}`)), nowSec + 3600] as const),
    Array.from({ length: VALID }, (_, n) => [revocationId(claimsOf(`over-${n}`)), nowSec - 1] as const),
  ]
  const tokens = new RevokedTokens(generation as unknown as Generation, async () => {
    const revoked = pages.shift()!
    return { revoked, generation: 1, hasMore: pages.length > 0 }
  })
  assert.equal(await tokens.has(claimsOf('valid-0')), true)
  for (let n = 0; n < VALID; n++) assert.equal(tokens.has(claimsOf(`valid-${n}`)), true, `valid-${n}`)
  assert.equal(tokens.has(claimsOf('over-0')), false)
  assert.equal(tokens.has(claimsOf('unknown')), false)
})

test('what is revoked while an answer is on its way is asked for before a token is good', async () => {
  const generation = { current: 1 }
  const revoked = [[revocationId(claimsOf('first')), 9e9] as const]
  const tokens = new RevokedTokens(generation as unknown as Generation, async () => {
    const page = { revoked: [...revoked], generation: generation.current, hasMore: false }
    if (generation.current === 1) {
      revoked.push([revocationId(claimsOf('second')), 9e9])
      generation.current = 2
    }
    return page
  })
  assert.equal(await tokens.has(claimsOf('second')), true)
})

test('a revoked token is that of its issuer alone', async () => {
  const page = { revoked: [[revocationId(claimsOf('same')), 9e9] as const], generation: 1, hasMore: false }
  const tokens = new RevokedTokens({ current: 1 } as unknown as Generation, async () => page)
  assert.equal(await tokens.has(claimsOf('same')), true)
  for (const iss of ['them', undefined]) assert.equal(tokens.has({ ...claimsOf('same'), iss } as Claims), false, iss)
})

const [OLD, NEW, PLAIN] = ['o', 'n', 'p'].map((letter) => letter.repeat(40)) as [string, string, string]

/** The tool as a process with this environment has it. */
function authWith(env: Record<string, string>) {
  return buildTool(AuthTool, { settings: loadSettings(env).settings }).tool.api()
}

const faultsOf = (env: Record<string, string>): string => faultsIn(env).join('\n')

const headerOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString())

const accepts = async (auth: ReturnType<typeof authWith>, token: string) => (await auth.validateToken(token)) !== null

test('keys are changed without a token that fails: the first signs, all are accepted, and one that is gone is not', async () => {
  const before = authWith({ AUTH_SECRET_KEY: PLAIN })
  const both = authWith({ AUTH_SECRET_KEYS: `2026-10:${OLD}`, AUTH_SECRET_KEY: PLAIN })
  const turned = authWith({ AUTH_SECRET_KEYS: ` 2026-11:${NEW}, 2026-10:${OLD}` })
  const after = authWith({ AUTH_SECRET_KEYS: `2026-11:${NEW}` })
  const tokens = await Promise.all([before, both, turned].map((auth) => auth.createToken({ sub: 'ada' })))
  assert.deepEqual(
    tokens.map((token) => headerOf(token).kid),
    [undefined, '2026-10', '2026-11'],
  )
  const answers = await Promise.all(
    [before, both, turned, after].map((auth) => Promise.all(tokens.map((token) => accepts(auth, token)))),
  )
  assert.deepEqual(answers, [
    [true, false, false],
    [true, true, false],
    [false, true, true],
    [false, false, true],
  ])
})

test('a token that names no key may be by any, one that names a key by that one alone', async () => {
  const auth = authWith({ AUTH_SECRET_KEYS: `a:${NEW},b:${OLD}` })
  const signed = (secret: string, header: object) =>
    new SignJWT({ sub: 'ada' })
      .setExpirationTime('1h')
      .setProtectedHeader({ alg: 'HS256', ...header })
      .sign(Buffer.from(secret))
  assert.equal(await accepts(auth, await signed(OLD, {})), true)
  assert.equal(await accepts(auth, await signed(OLD, { kid: 'b' })), true)
  assert.equal(await accepts(auth, await signed(OLD, { kid: 'a' })), false)
  assert.equal(await accepts(auth, await signed(OLD, { kid: 'c' })), false)
  assert.equal(await accepts(auth, await signed(PLAIN, {})), false)
})

test('issuer and audience are set and checked', async () => {
  const env = { AUTH_SECRET_KEY: PLAIN, AUTH_ISSUER: 'https://shop.example.com', AUTH_AUDIENCE: 'shop' }
  const auth = authWith(env)
  const token = await auth.createToken({ sub: 'ada' })
  const claims = (await auth.validateToken(token))!
  assert.deepEqual([claims.iss, claims.aud], [env.AUTH_ISSUER, env.AUTH_AUDIENCE])
  for (const other of [{ AUTH_ISSUER: 'https://other.example.com' }, { AUTH_AUDIENCE: 'other' }])
    assert.equal(await accepts(authWith({ ...env, ...other }), token), false)
  assert.equal(await accepts(auth, await authWith({ AUTH_SECRET_KEY: PLAIN }).createToken({ sub: 'ada' })), false)
})

test('every token has an id of its own, also when old claims are signed again', async () => {
  const auth = authWith({ AUTH_SECRET_KEY: PLAIN })
  const first = (await auth.validateToken(await auth.createToken({ sub: 'ada' })))!
  const second = (await auth.validateToken(await auth.createToken(first)))!
  assert.match(String(first.jti), /^[\w-]{16}$/)
  assert.notEqual(first.jti, second.jti)
})

test('keys that are none refuse the start, and the message has no secret', () => {
  const faults: [keys: string, message: RegExp][] = [
    ['short:secret', /expected 1 to 16 of kid:secret .* got something else/],
    [NEW, /expected 1 to 16 of kid:secret/],
    [`a:${NEW},`, /expected 1 to 16 of kid:secret/],
    [`a:${NEW},a:${OLD}`, /expected each key id once, got "a" twice/],
    [`a:-----BEGIN-${'x'.repeat(40)}`, /expected 1 to 16 of kid:secret/],
  ]
  for (const [AUTH_SECRET_KEYS, message] of faults) {
    const told = faultsOf({ AUTH_SECRET_KEYS })
    assert.match(told, message)
    assert.equal(told.includes('nnnn') || told.includes('oooo'), false)
  }
  // They do where AUTH_SECRET_KEY would be asked for.
  assert.equal(faultsOf({ HTTP_HOST: '0.0.0.0', AUTH_SECRET_KEYS: `a:${NEW}` }), '')
  assert.match(faultsOf({ AUTH_SECRET_KEY: PLAIN, AUTH_JWKS_URL: 'https://id.example.com/keys' }), /AUTH_JWKS_ISSUER/)
  assert.match(
    faultsOf({ AUTH_SECRET_KEY: PLAIN, AUTH_JWKS_URL: 'http://id.example.com/keys' }),
    /expected an https URL/,
  )
})
