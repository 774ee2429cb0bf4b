import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { exportJWK, SignJWT } from 'jose'
import { plugin } from '#heddle/testing'
import { loadSettings } from '../../../src/core/config/load.ts'
import AuthTool from '../../../src/tools/auth/index.ts'
import Tokens from '../../fixtures/started/tokens/tokens/plugins/hold-lines.ts'
import { buildTool, SECRET } from '../../support/tool-runtime.ts'

const ISSUER = 'https://id.example.com/'
const AUDIENCE = 'shop'
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const PAIRS = {
  EdDSA: generateKeyPairSync('ed25519'),
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES384: generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  ES512: generateKeyPairSync('ec', { namedCurve: 'P-521' }),
  RS256: generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ...{ RS384: rsa, RS512: rsa, PS256: rsa, PS384: rsa, PS512: rsa },
}
type Alg = keyof typeof PAIRS
const ALGS = Object.keys(PAIRS) as Alg[]

const NAMED_KEYS = Promise.all(
  ALGS.map(async (alg): Promise<object> => ({ ...(await exportJWK(PAIRS[alg].publicKey)), alg, kid: alg, use: 'sig' })),
)

/** An identity provider that answers as the test says. */
async function provider(t: TestContext, given: Promise<object[]> = NAMED_KEYS) {
  const keys = await given
  const answer = (response: ServerResponse): void => void response.end(JSON.stringify({ keys }))
  const state = { asked: 0, answer }
  const server = createServer((_, response) => {
    state.asked++
    state.answer(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const env = {
    AUTH_SECRET_KEY: SECRET,
    AUTH_JWKS_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/keys`,
    AUTH_JWKS_ISSUER: ISSUER,
    AUTH_AUDIENCE: AUDIENCE,
  }
  const build = () => buildTool(AuthTool, { settings: loadSettings(env).settings })
  return { state, env, build }
}

interface Told {
  alg?: string
  kid?: string | undefined
  key?: KeyObject | Uint8Array
  claims?: object
}

function tokenBy(by: Alg, told: Told = {}): Promise<string> {
  const { alg, kid, key, claims } = { alg: by, kid: by, key: PAIRS[by].privateKey, claims: {}, ...told }
  const nowSec = Math.floor(Date.now() / 1000)
  const all = { sub: 'auth0|ada', iss: ISSUER, aud: [AUDIENCE, 'other'], exp: nowSec + 60, ...claims }
  return new SignJWT(all).setProtectedHeader({ alg, ...(kid !== undefined && { kid }) }).sign(key)
}

test('tokens of an identity provider are accepted beside own ones, with keys that are fetched once', async (t) => {
  const { state, build } = await provider(t)
  const auth = build().tool.api()
  for (const alg of ALGS) assert.equal((await auth.validateToken(await tokenBy(alg)))?.sub, 'auth0|ada', alg)
  assert.equal(state.asked, 1)
  assert.equal((await auth.validateToken(await auth.createToken({ sub: 'ada' })))?.sub, 'ada')
})

test('what the provider did not sign for this service is null', async (t) => {
  const { state, build } = await provider(t)
  const auth = build().tool.api()
  const nowSec = Math.floor(Date.now() / 1000)
  const stranger = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const publicText = PAIRS.RS256.publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const bad: Record<string, () => Promise<string>> = {
    'another key': () => tokenBy('ES256', { key: stranger.privateKey }),
    'an unknown key id': () => tokenBy('ES256', { kid: 'unknown' }),
    'the key of another algorithm': () => tokenBy('ES256', { kid: 'RS256' }),
    'another audience': () => tokenBy('EdDSA', { claims: { aud: 'other' } }),
    'another issuer': () => tokenBy('EdDSA', { claims: { iss: 'https://evil.example.com/' } }),
    'the own issuer, which is none': () => tokenBy('EdDSA', { claims: { iss: undefined } }),
    'no exp': () => tokenBy('EdDSA', { claims: { exp: undefined } }),
    'an exp that is over': () => tokenBy('EdDSA', { claims: { exp: nowSec - 10 } }),
    'an HMAC with the public key': () => tokenBy('RS256', { alg: 'HS256', key: Buffer.from(publicText) }),
    'PS256 by a key for RS256': () => tokenBy('RS256', { alg: 'PS256' }),
    'RS512 by a key for RS256': () => tokenBy('RS256', { alg: 'RS512' }),
    'ES256 by a key of another curve': () =>
      tokenBy('ES384', { alg: 'ES256', kid: 'ES384', key: PAIRS.ES256.privateKey }),
  }
  for (const [what, make] of Object.entries(bad)) assert.equal(await auth.validateToken(await make()), null, what)
  // Unknown keys do not make it ask again and again.
  for (let index = 0; index < 50; index++) await auth.validateToken(await tokenBy('EdDSA', { kid: `k${index}` }))
  assert.equal(state.asked, 1)
})

test('validateToken(): tries the keys that fit in turn when the token names none, up to 16', async (t) => {
  const unnamed = async (key: KeyObject, more: object = {}) => ({ ...(await exportJWK(key)), ...more })
  const strangers = Array.from({ length: 15 }, () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey)
  const late = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const { state, build } = await provider(
    t,
    Promise.all([
      // Without `alg` a key of RSA fits each algorithm of RSA; what cannot be read is passed over.
      ...[PAIRS.RS256.publicKey, rsa.publicKey, PAIRS.ES384.publicKey, PAIRS.ES512.publicKey].map((key) =>
        unnamed(key),
      ),
      { kty: 'EC', crv: 'P-256', x: 'AAAA', y: 'AAAA' },
      ...strangers.map((key, index) => unnamed(key, { kid: `s${index}` })),
      unnamed(PAIRS.ES256.publicKey, { kid: 'good' }),
      unnamed(late.publicKey, { kid: 'late' }),
      unnamed(PAIRS.EdDSA.publicKey, { use: 'enc' }),
    ]),
  )
  const auth = build().tool.api()
  for (const alg of ALGS.filter((each) => each !== 'EdDSA'))
    assert.equal((await auth.validateToken(await tokenBy(alg, { kid: undefined })))?.sub, 'auth0|ada', alg)
  const beyond = { kid: undefined, key: late.privateKey }
  assert.equal(await auth.validateToken(await tokenBy('ES256', beyond)), null, 'the seventeenth key')
  assert.notEqual(await auth.validateToken(await tokenBy('ES256', { ...beyond, kid: 'late' })), null)
  assert.equal(await auth.validateToken(await tokenBy('EdDSA', { kid: undefined })), null, 'a key for encryption')
  const expired = { kid: undefined, claims: { exp: 1 } }
  assert.equal(await auth.validateToken(await tokenBy('RS384', expired)), null, 'an expired token')
  assert.equal(state.asked, 1)
})

test('validateToken(): a token that names no key is held against keys that the provider has got since', async (t) => {
  const { state, build } = await provider(t)
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
  const auth = build().tool.api()
  assert.notEqual(await auth.validateToken(await tokenBy('ES256', { kid: undefined })), null)
  const next = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const keys = [{ ...(await exportJWK(next.publicKey)), kid: 'next' }]
  state.answer = (response) => void response.end(JSON.stringify({ keys }))
  const rotated = { kid: undefined, key: next.privateKey }
  assert.equal(await auth.validateToken(await tokenBy('ES256', rotated)), null, 'it has just been asked')
  t.mock.timers.tick(31_000)
  assert.notEqual(await auth.validateToken(await tokenBy('ES256', rotated)), null)
  assert.equal(await auth.validateToken(await tokenBy('ES256', { kid: undefined })), null, 'the key that is gone')
  for (let n = 0; n < 20; n++) await auth.validateToken(await tokenBy('ES256', { kid: undefined }))
  assert.equal(state.asked, 2)
})

test('a provider that does not answer costs its own tokens 503, is told of once, and is not asked for each', async (t) => {
  const { state, build } = await provider(t)
  const answers: [what: string, answer: (response: ServerResponse) => void][] = [
    ['an error', (response) => void response.writeHead(500).end()],
    ['no JSON', (response) => void response.end('<html>')],
    ['no key set', (response) => void response.end('{"keys":5}')],
    ['a redirect', (response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()],
    ['too much', (response) => void response.end(JSON.stringify({ keys: [], pad: 'x'.repeat(2 << 20) }))],
  ]
  for (const [what, answer] of answers) {
    state.answer = answer
    state.asked = 0
    const { tool, recorded } = build()
    const auth = tool.api()
    const token = await tokenBy('ES256')
    for (let call = 0; call < 20; call++)
      await assert.rejects(auth.validateToken(token), { code: 'AUTH_UNAVAILABLE', status: 503 }, what)
    assert.equal(state.asked, 1, what)
    assert.equal(recorded.logs.filter(({ message }) => message.includes('AUTH_JWKS_URL')).length, 1, what)
    assert.notEqual(await auth.validateToken(await auth.createToken({ sub: 'ada' })), null)
  }
})

test('routes take them, and answer 503 while they cannot be checked', async (t) => {
  const { state, env } = await provider(t)
  const { answer } = state
  const whoami = async () => (await plugin(t, Tokens, { env })).get('/whoami', { token: await tokenBy('EdDSA') })
  state.answer = (response) => void response.writeHead(500).end()
  const refused = await whoami()
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1'])
  state.answer = answer
  const { body } = await whoami()
  assert.deepEqual([body.claims.sub, body.claims.iss], ['auth0|ada', ISSUER])
})
