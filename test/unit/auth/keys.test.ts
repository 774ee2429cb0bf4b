import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SignJWT } from 'jose'
import { ConfigFaults, loadSettings } from '../../../src/core/config/load.ts'
import AuthTool from '../../../src/tools/auth/index.ts'
import { buildTool } from '../../support/tool-runtime.ts'

const [OLD, NEW, PLAIN] = ['o', 'n', 'p'].map((letter) => letter.repeat(40)) as [string, string, string]

/** The tool as a process with this environment has it. */
function authWith(env: Record<string, string>) {
  return buildTool(AuthTool, { settings: loadSettings(env).settings }).tool.api()
}

function faultsOf(env: Record<string, string>): string {
  try {
    loadSettings(env)
    return ''
  } catch (error) {
    assert.ok(error instanceof ConfigFaults)
    return error.faults.join('\n')
  }
}

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
